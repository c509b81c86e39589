"""The way between processes: sockets, InfiniBand, gloo, torch's store."""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Rule, Weight
from gpu_dash.logs.rules.voice import Voice, voices
from gpu_dash.model.log import Severity

RULES = (
    Rule(
        "nccl_net",
        (
            "No route to host",
            "Connection refused",
            "Connection timed out",
            "Network is unreachable",
            "socket interface found",
            "socketStartConnect",
            "socketPollConnect",
            "NET/IB",
            "NET/OFI",
            "NET/Socket",
            "ibv_",
            "Address family",
            "neither AF_INET",
            "Message truncated",
            "ocket",
            "Connect to ",
            "GID",
        ),
        unless=r"NET/IB : No device found",
        weight=Weight.DETAIL,
        voices=voices(Voice.NCCL_WARN),
        first_check="route and firewall to the peer's address; NCCL_SOCKET_IFNAME",
        matches=(
            "host-b:240:240 [6] misc/socket.cc:533 NCCL WARN socketPollConnect: Connect to "
            "192.0.2.14<56849> returned 113(No route to host) errno 115(Operation now in progress)",
            "host-b:12:40 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
            "host-b:12:90 [3] misc/ibvwrap.cc:261 NCCL WARN Call to ibv_modify_qp failed with "
            "error Invalid argument errno 22",
            "host-b:12:90 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from "
            "peer 192.0.2.9<4411> with status=12 opcode=0 len=0 vendor err 129",
            "host-b:12:90 [3] misc/socket.cc:751 NCCL WARN socketFinalizeAccept: wrong type 1 != 3",
            "host-b:12:90 [3] transport/net_ib.cc:95 NCCL WARN NET/IB : mlx5_0:1 Got async event : "
            "port error",
        ),
        rejects=("host-a:2336:2336 [0] NCCL INFO NET/IB : No device found.",),
    ),
    Rule(
        "nccl_net",
        ("closed by remote peer", "Connection reset by peer", "Broken pipe", "Connection closed"),
        weight=Weight.UNEXPLAINED,
        voices=voices(Voice.NCCL_WARN),
        matches=(
            "host-b:9:77 [1] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by "
            "remote peer host-a<35764>",
        ),
        rejects=(
            "gpuhost:5158:5256 [0] NCCL INFO [Service thread] Connection closed by localRank 1",
        ),
    ),
    Rule(
        "nccl_net",
        ("retrying (",),
        pattern=r"onnect.*retrying \(\d+/\d+\)",
        weight=Weight.WAITING,
        severity=Severity.WARNING,
        voices=voices(Voice.NCCL_NOTE),
        matches=(
            "host-b:240:240 [6] NCCL INFO socketPollConnect: connect returned No route to host, "
            "retrying (26/34) after sleep for 2600 msec",
        ),
        rejects=("host-b:240:240 [6] NCCL INFO misc/socket.cc:570 -> 2",),
    ),
    Rule(
        "nccl_net",
        (
            "remote process exited or there was a network error",
            "ncclRemoteError",
            "DistNetworkError",
            "DistStoreError",
            "client socket has timed out",
            "client socket has failed to connect to any network address",
            "connectFullMesh failed",
            "gloo/transport/",
            "failed to recv, got 0 bytes",
            "sendBytes failed",
            "clients joined",
            "Socket Timeout",
            "wait timeout after",
            "Timed out initializing process group",
            "Every node should have a unique IP address",
            "The DP master node",
        ),
        weight=Weight.UNEXPLAINED,
        first_check="the peer first: did its process die, is its port reachable; then the network",
        unless=r"EADDRINUSE|already in use",
        matches=(
            "RuntimeError: NCCL error: remote process exited or there was a network error",
            "[E306 00:03:07.842961975 socket.cpp:1011] [c10d] The client socket has timed out "
            "after 60000ms while trying to connect to (192.0.2.12, 29400).",
            "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. "
            "1/2 clients joined.",
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed "
            "by peer [192.0.2.7]:35463",
            "RuntimeError: Timed out initializing process group in store based barrier on rank: 1, "
            "for key: store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)",
        ),
        rejects=(
            "[rank1]:[W122 20:05:19.749124012 socket.cpp:204] [c10d] The hostname of the client "
            "socket cannot be retrieved. err=-3",
        ),
    ),
    Rule(
        "nccl_net",
        ("retrieving ncclUniqueId",),
        pattern=r"store->get\(.*got error: (?P<what>[^,]+)",
        weight=Weight.UNEXPLAINED,
        first_check="the process of rank 0 first: did it die before it could answer; then the way "
        "to it",
        matches=(
            "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and "
            "retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
            "store->get('0') got error: Connection reset by peer",
        ),
        rejects=("torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317",),
    ),
    Rule(
        "nccl_net",
        ("The client socket has failed to connect to", "The client socket has timed out"),
        # A peer that refuses may not be up yet, and no family of addresses (97) is no fault.
        pattern=r"errno: (?:101|110|113)\b|timed out",
        weight=Weight.WAITING,
        severity=Severity.WARNING,
        voices=voices(Voice.WARNING),
        first_check="route and firewall to the address in the line",
        matches=(
            "[W1130 10:13:02.1 socket.cpp:752] [c10d] The client socket has failed to connect to "
            "[host-b]:29500 (errno: 113 - No route to host).",
        ),
        rejects=(
            "[W1130 10:13:02.1 socket.cpp:752] [c10d] The client socket has failed to connect to "
            "[localhost]:29500 (errno: 97 - Address family not supported by protocol).",
        ),
    ),
)
