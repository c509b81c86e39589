from gpu_dash.cli import main

main()
