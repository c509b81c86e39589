"""What is wrong before anything runs: flags, ports, the model, sizes, modules."""

from __future__ import annotations

from gpu_dash.logs.rules.rule import Case, Rule, Weight, When
from gpu_dash.model.log import Severity

_REMOVED = (
    Case(
        r"--swap-space|'swap_space'",
        "--swap-space was removed in 0.18.0: delete it",
    ),
    Case(
        r"--max-seq-len-to-capture|'max_seq_len_to_capture'",
        "--max-seq-len-to-capture was removed in 0.11.0: delete it or use "
        "--cudagraph-capture-sizes",
    ),
    Case(
        r"invalid choice: '?(?P<value>[^'\s]+)'? \(choose from",
        "{value} is not among the choices that the line lists",
    ),
)

RULES = (
    Rule(
        "bad_flag",
        (": error: ",),
        pattern=r"^[\w./-]+(?: [\w-]+){0,2}: error: (?:unrecognized arguments|argument |ambiguous "
        r"option|the following arguments are required|invalid choice|expected )",
        cases=_REMOVED,
        matches=(
            "vllm: error: unrecognized arguments: --swap-space 8 --max-seq-len-to-capture 32768",
            "vllm serve: error: argument --kv-cache-dtype: invalid choice: 'int3' (choose from "
            "'auto', 'bfloat16')",
            "api_server.py: error: argument --port: invalid int value: 'x'",
        ),
        rejects=(
            "usage: api_server.py [-h] [--headless] [--api-server-count API_SERVER_COUNT]",
            "/usr/local/lib/x.py:63: FutureWarning: The pynvml package is deprecated.",
        ),
    ),
    Rule(
        "bad_flag",
        ("unexpected keyword argument",),
        pattern=r"(?:EngineArgs|\bLLM|Config)\.?(?:__init__)?\(?.*unexpected keyword argument",
        cases=_REMOVED,
        matches=(
            "TypeError: EngineArgs.__init__() got an unexpected keyword argument 'swap_space'",
        ),
        rejects=(
            "TypeError: FlashAttentionImpl.__init__() got an unexpected keyword argument "
            "'layer_idx'",
        ),
    ),
    Rule(
        "port_in_use",
        (
            "Address already in use",
            "address already in use",
            "EADDRINUSE",
            "error while attempting to bind",
            "port is already allocated",
        ),
        matches=(
            "OSError: [Errno 98] Address already in use",
            "docker: Error response from daemon: driver failed programming external connectivity: "
            "Bind for 0.0.0.0:8000 failed: port is already allocated.",
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): "
            "address already in use",
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any "
            "local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE",
        ),
        rejects=(
            "DEBUG 09-04 17:38:34 launcher.py:64] port 8000 is used by process psutil.Process",
        ),
    ),
    Rule(
        "tp_size",
        ("divisible by", "not aligned with the quantized weight shape"),
        pattern=r"(?i)not aligned|heads|parallel|\btp\b|world|weight|expert|partition|vocab"
        r"|size_[kn]|^(?:\w+Error: )?\d+ is not divisible",
        unless=r"block_size|max_num_batched_tokens",
        cases=(
            Case(
                r"heads \((?P<heads>\d+)\)",
                "a --tensor-parallel-size that divides {heads}, or --pipeline-parallel-size",
            ),
            Case(
                r"expert|block_[nk]|quantiz|BLOCK_SIZE",
                "a smaller --tensor-parallel-size; --enable-expert-parallel for experts",
            ),
        ),
        matches=(
            "ValueError: Total number of attention heads (32) must be divisible by tensor parallel "
            "size (3).",
            "ValueError: The output_size of gate's and up's weight = 192 is not divisible by "
            "weight quantization block_n = 128.",
            "AssertionError: 32001 is not divisible by 8",
            "ValueError: The input size is not aligned with the quantized weight shape. This can "
            "be caused by too large tensor parallel size.",
        ),
        rejects=("ValueError: block_size (24) must be divisible by 16",),
    ),
    Rule(
        "model_config",
        (
            "Failed to load the model config",
            "is not a local folder and is not a valid model identifier",
            "Repo id must be in the form",
            "Repo id must use alphanumeric",
            "Invalid repository ID or local directory",
            "Cannot find an appropriate cached snapshot",
            "We couldn't connect to",
            "outgoing traffic has been disabled",
            "access gated repo",
            "access a gated repo",
            "Access to model",
            "GatedRepoError",
            "RepositoryNotFoundError",
            "does not appear to have a file named",
            "No config file found",
            "set the option `trust_remote_code",
            "argument `trust_remote_code",
            "contains custom code which must be executed",
            "are not supported for now",
            "does not recognize this architecture",
            "Unrecognized model in",
            "Cannot find any model weights",
            "Cannot find any of",
            "SafetensorError",
            "is greater than the derived max_model_len",
            "Can't load the configuration of",
            "Can't load tokenizer",
            "no component or parameter named",
            "no module or parameter named",
            "LocalEntryNotFoundError",
            "failed to be inspected",
            "401 Client Error",
            "403 Client Error",
            "404 Client Error",
            "is not supported by the Transformers implementation",
            "Unrecognized configuration class",
            "No supported config format found",
            "does not appear to have files named",
            "Error no file named",
            "Attempted to load weight",
            "not initialized from checkpoint",
            "size mismatch for",
            "Max retries exceeded with url: ",
            "does not exist or is not currently imported",
        ),
        unless=r"Max retries exceeded with url: (?!\S*/resolve/|\S*/api/models)",
        cases=(
            Case(
                "(?i)trust.remote.code|custom code",
                "read the code in the model's repository, then --trust-remote-code; or a newer "
                "transformers",
            ),
            Case(
                "(?i)gated|40[13] Client", "accept the model's terms; a token with access: HF_TOKEN"
            ),
            Case(
                r"max_model_len \((?P<asked>\d+)\)",
                "--max-model-len {asked} is longer than the model allows: lower it",
            ),
            Case(
                "(?i)not supported for now|not recognize|Unrecognized model",
                "a vLLM (and transformers) that knows this architecture",
            ),
            Case(
                "SafetensorError|named|[Ww]eight|size mismatch|checkpoint",
                "the model's folder is incomplete or damaged: compare its files, load it again",
            ),
        ),
        matches=(
            "OSError: acme/model-8b is not a local folder and is not a valid model identifier "
            "listed on 'https://hub.invalid/models'",
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or "
            "'namespace/repo_name': '/no/such/model'. Use `repo_type` argument if needed.",
            "  Value error, User-specified max_model_len (999999) is greater than the derived "
            "max_model_len (max_position_embeddings=2048.0)",
            "safetensors_rust.SafetensorError: Error while deserializing header: "
            "MetadataIncompleteBuffer",
            "ValueError: There is no module or parameter named 'lm_head' in Qwen2ForCausalLM",
            "AssertionError: Attempted to load weight (torch.Size([1024, 128])) into parameter "
            "(torch.Size([2048, 128]))",
            "ValueError: Following weights were not initialized from checkpoint: {'lm_head'}",
            "ValueError: No supported config format found in /models/m.",
            "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://hub.invalid/",
        ),
        rejects=(
            "INFO 01-02 03:04:05 [api_server.py:7] args: Namespace(trust_remote_code=True)",
            "+ vllm serve acme/model-7b --trust-remote-code",
            "If this is a private repository, make sure to pass a token having permission to this "
            "repo either by logging in or by passing `token=<your_token>`",
        ),
    ),
    Rule(
        "model_config",
        ("KeyError",),
        pattern=r"^KeyError: '(?:\w+\.)+\w*(?:weight|bias|scale|zeros|g_idx)\w*'",
        first_check="weights that this vLLM does not expect in this model: the checkpoint against "
        "the architecture, then a newer vLLM",
        matches=("KeyError: 'layers.0.mlp.gate_up_proj.qweight'",),
        rejects=("KeyError: 'choices'",),
    ),
    Rule(
        "model_config",
        ("KeyError",),
        pattern=r"^KeyError: '\w+'",
        when=When(frames=r"configuration_auto\.py|auto_factory\.py|tokenization_auto\.py"),
        first_check="a transformers that knows this type of model",
        matches=(
            '  File "/x/transformers/models/auto/configuration_auto.py", line 9, in __getitem__\n'
            "KeyError: 'qwen9_moe'",
        ),
        rejects=("KeyError: 'choices'",),
    ),
    Rule(
        "model_config",
        ("object has no attribute",),
        pattern=r"^AttributeError: '\w+Config' object",
        first_check="the model's config against a transformers and a vLLM that know this model",
        matches=("AttributeError: 'Qwen9Config' object has no attribute 'num_attention_heads'",),
        rejects=("AttributeError: 'NoneType' object has no attribute 'x'",),
    ),
    Rule(
        "model_config",
        ("No such file or directory: ", "Permission denied: ", "Not a directory: "),
        pattern=r"directory: |denied: ",
        when=When(
            text=r"'[^']*(?:config\.json|tokenizer[\w.]*|\.safetensors|index\.json|\.gguf|\.jinja"
            r"|vocab[\w.]*|merges\.txt|pytorch_model\S*)'"
        ),
        first_check="the file that the line names: is the model's folder whole, mounted, readable",
        matches=(
            "FileNotFoundError: [Errno 2] No such file or directory: '/models/m/config.json'",
            "PermissionError: [Errno 13] Permission denied: '/models/m/tokenizer.json'",
        ),
        rejects=("FileNotFoundError: [Errno 2] No such file or directory: '/tmp/run.sock'",),
    ),
    Rule(
        "missing_module",
        ("Failed to import Triton kernels",),
        weight=Weight.CONDITION,
        severity=Severity.WARNING,
        first_check="nothing, unless the model needs them (gpt-oss): the triton that vLLM pins",
        matches=(
            "(EngineCore pid=5) ERROR 11-30 10:13:02 [config.py:40] Failed to import Triton "
            "kernels. Please make sure your triton version is compatible. Error: No module named "
            "'triton_kernels'",
        ),
        rejects=("(Worker pid=9) INFO 11-30 18:50:34 [mxfp4.py:1] Using Triton backend",),
    ),
    Rule(
        "missing_module",
        (
            "No module named",
            "cannot import name",
            "cannot open shared object file",
            "undefined symbol",
            "No package metadata was found",
            "DistributionNotFound",
            "version `GLIBC",
            "version `lib",
            "version `CXXABI",
            "is required but not installed",
            "operator torchvision::",
            "Please install ",
            "packages that were not found in your environment",
            "_OpNamespace' '_C",
            "DLL load failed",
            "is not installed",
            "requires installation of",
            "kernels not found",
            "Failed to load NCCL library",
            "failed to load the NCCL library",
        ),
        when=When(
            text=r"\b(?:ModuleNotFound|Import|OS|Attribute|Runtime|PackageNotFound|Validation|Value"
            r"|Assertion)Error\b|DistributionNotFound|^\s*Value error|undefined symbol|NCCL library"
        ),
        cases=(
            Case(
                r"No module named '?(?P<module>[\w.]+)",
                "install {module} in the server's environment, in the version vLLM pins",
            ),
            Case(
                r"undefined symbol|GLIBC|torchvision::|_OpNamespace",
                "a wheel built against another torch or system: install vLLM into a fresh "
                "environment",
            ),
        ),
        matches=(
            "ModuleNotFoundError: No module named 'xgrammar'",
            "ImportError: libcudart.so.12: cannot open shared object file: No such file or "
            "directory",
            "ImportError: /opt/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
            "importlib.metadata.PackageNotFoundError: No package metadata was found for vllm",
            "RuntimeError: operator torchvision::nms does not exist",
            "ValueError: Ray Compiled Graph is not installed. Run `pip install ray[cgraph]` to "
            "install it.",
            "AssertionError: DeepEP kernels not found. Please follow its README to install them.",
            "ImportError: Please install bitsandbytes>=0.46.1 by running `pip install`",
            "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
        ),
        rejects=(
            "host-a:2336:2336 [0] NCCL INFO NET/Plugin : dlerror=libnccl-net.so: cannot open "
            "shared object file: No such file or directory No plugin found",
            "WARNING 01-02 03:04:05 [_custom_ops.py:20] Failed to import from vllm._C with "
            "ModuleNotFoundError(\"No module named 'vllm._C'\")",
        ),
    ),
)
