"""What the screen says, as plain rows: pure functions of the view and a size."""
