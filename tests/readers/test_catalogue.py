import json

import pytest

from nvdash.errors import NvdashError, UnknownError, UsageError
from nvdash.readers import catalogue, model_files
from nvdash.readers.catalogue import GIB, MIB, seen_by_kernels
from nvdash.readers.quantization import checkpoint_of_config


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("NVDASH_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def overlay(tmp_path, monkeypatch):
    monkeypatch.setenv("NVDASH_MATRIX_PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("rtx-5090", "rtx-5090"),
        ("RTX 5090", "rtx-5090"),
        ("5090", "rtx-5090"),
        ("NVIDIA GeForce RTX 5090", "rtx-5090"),
        ("GeForce RTX 5090", "rtx-5090"),
        ("H200 SXM", "h200-sxm"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA H200 NVL", "h200-nvl"),
        ("NVIDIA H20-3e", "h20-141"),
        ("Tesla T4", "t4"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("A100-40GB", "a100-40gb-sxm"),
        ("sm120", "sm120"),
        ("12.0", "sm120"),
        ("gfx942", "gfx942"),
    ],
)
def test_a_gpu_answers_to_every_name_people_and_drivers_use(text, id_):
    assert catalogue.load().gpu(text).id == id_


def test_device_names_match_as_whole_strings_only():
    with pytest.raises(UnknownError) as refusal:
        catalogue.load().gpu("NVIDIA GeForce RTX 5090 Laptop GPU")
    assert "NVIDIA GeForce RTX 5090" in refusal.value.hint


def test_a_short_name_of_differing_products_is_refused_with_the_candidates():
    with pytest.raises(UsageError) as refusal:
        catalogue.load().gpu("H100")
    assert "h100-sxm, h100-pcie, h100-nvl" in refusal.value.found


def test_a_short_name_is_accepted_where_its_meanings_are_alike():
    assert catalogue.load().gpu("H100", alike=seen_by_kernels).arch == "sm90"


def test_a_figure_in_which_the_meanings_differ_is_not_taken_from_one_of_them():
    # both cards print 81,920 MiB; 2039 and 1935 GB/s
    known = catalogue.load()
    assert known.gpu("A100-80GB").memory_high_bytes == 81_920 * MIB
    assert known.gpu("A100-80GB").bandwidth_gbs is None
    assert known.gpu("H100", alike=seen_by_kernels).memory_low_bytes is None


@pytest.mark.parametrize(
    ("id_", "low", "high", "source"),
    [
        ("h200-sxm", 143_156 * MIB, 143_156 * MIB, "engine total"),
        ("h100-sxm", 81_082 * MIB, 81_106 * MIB, "engine total"),
        # nvidia-smi prints 97,887 MiB; 0.7 GiB below it is 101,890,503,475 bytes
        ("rtx-pro-6000-ws", 97_887 * MIB - int(0.7 * GIB), 97_887 * MIB, "nvidia-smi total"),
        ("l40", 48 * 10**9, 48 * GIB, "vendor"),
        ("mi250", 65_520 * MIB, 65_520 * MIB, "device total"),
        ("mi308x", None, None, "unknown"),
    ],
)
def test_the_total_is_a_range_where_the_engine_figure_was_not_seen(id_, low, high, source):
    gpu = catalogue.load().gpu(id_)
    assert (gpu.memory_low_bytes, gpu.memory_high_bytes) == (low, high)
    assert gpu.memory_source.startswith(source)


def test_one_die_of_a_two_die_part_has_half_the_bandwidth():
    assert catalogue.load().gpu("MI250X").bandwidth_gbs == 1600


def test_a_capability_names_an_architecture_and_no_memory():
    gpu = catalogue.load().gpu("12.0")
    assert (gpu.arch, gpu.compute_capability, gpu.memory_low_bytes) == ("sm120", "12.0", None)


def test_a_capability_that_only_the_matrix_names_has_kernels_and_no_memory():
    gpu = catalogue.load().gpu("sm87")  # Jetson Orin: on the axis of the matrix, no product in gpus.yaml
    assert (gpu.arch, gpu.memory_low_bytes) == ("sm87", None)


def test_an_amd_target_is_never_an_nvidia_capability():
    gpu = catalogue.load().gpu("gfx1100")
    assert (gpu.vendor, gpu.arch, gpu.compute_capability) == ("amd", "gfx1100", None)


def test_a_custom_card_has_the_total_its_owner_gives():
    gpu = catalogue.load().gpu("custom:lab card:47.5:sm120")
    assert (gpu.name, gpu.arch, gpu.memory_low_bytes) == ("lab card", "sm120", 51_002_736_640)


@pytest.mark.parametrize("rest", ["", "x:48", "x:0:sm120", "x:much:sm120", "x:48:ada", " :48:sm120"])
def test_a_custom_card_that_does_not_read_is_refused_with_the_form(rest):
    with pytest.raises(UsageError) as refusal:
        catalogue.load().gpu(f"custom:{rest}")
    assert "custom:NAME:GiB:smXX" in refusal.value.expected


def test_every_product_has_a_unique_answer_to_its_id():
    known = catalogue.load()
    assert all(known.gpu(gpu.id) == gpu for gpu in known.all_gpus())
    assert len(known.all_gpus()) >= 80


def test_an_overlay_adds_a_private_gpu_and_replaces_one_by_id(overlay):
    (overlay / "gpus.yaml").write_text(
        "gpus:\n"
        "  - {id: lab-1, name: Lab One, vendor: nvidia, arch: sm120, confidence: high,"
        " memory: {engine_mib: 1024, engine_source: our rack}}\n"
        "  - {id: t4, name: NVIDIA T4, vendor: nvidia, arch: sm75, confidence: high,"
        " memory: {engine_mib: 14912, engine_source: our rack}}\n"
    )
    known = catalogue.load()
    assert known.gpu("Lab One").memory_low_bytes == GIB
    assert known.gpu("t4").memory_low_bytes == 14_912 * MIB


def test_problems_of_a_catalogue_file_are_reported_together_with_their_lines(overlay):
    (overlay / "gpus.yaml").write_text(
        "gpus:\n  - id: lab-1\n    name: Lab One\n    vender: nvidia\n    arch: sm120\n    confidence: high\n"
        "    memory: {engine_mib: 1024}\n"
    )
    with pytest.raises(NvdashError) as refusal:
        catalogue.load()
    said = str(refusal.value)
    assert "gpus.yaml:4 gpus[0].vender: expected a known key" in said
    assert "gpus.yaml:2 gpus[0]: expected the key vendor, it is missing" in said
    assert "a figure without a source" in said


def test_a_second_load_reads_the_compiled_file(monkeypatch):
    catalogue._of_files.cache_clear()
    catalogue.load()
    catalogue._of_files.cache_clear()
    monkeypatch.setattr(catalogue, "rows_of", lambda files: pytest.fail("parsed again"))
    assert catalogue.load().gpu("t4").arch == "sm75"


def test_a_config_file_is_a_model_with_its_own_checkpoint(tmp_path):
    config = {"num_hidden_layers": 2, "torch_dtype": "bfloat16"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    for text in (str(tmp_path), str(tmp_path / "config.json")):
        model = catalogue.load().model(text)
        assert (model.name, dict(model.config)) == (tmp_path.name, config)
        assert model.checkpoint("bf16").kv_cache_scheme_known


def test_a_modelopt_file_beside_the_config_says_what_auto_becomes(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    algorithms = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": algorithms}))
    checkpoint = catalogue.load().model(str(tmp_path)).asked
    assert (checkpoint.weights, checkpoint.method, checkpoint.kv_cache_scheme) == ("nvfp4", "modelopt", "fp8")


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, "\udcff"])
def test_a_config_that_is_no_object_is_refused(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError) as refusal:
        catalogue.load().model(str(path))
    assert refusal.value.expected == "a JSON object"


def test_an_unknown_model_is_refused_without_a_default():
    with pytest.raises(UnknownError):
        catalogue.load().model("no-such-model")


def test_a_base_name_of_one_model_is_that_model():
    assert catalogue.load().model("minimax-m2.5").name == "MiniMaxAI/MiniMax-M2.5"


def test_a_folder_here_comes_before_a_base_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "MiniMax-M2.5").mkdir()
    assert catalogue.load().model_row("MiniMax-M2.5") is None


def test_three_products_are_proposed_and_no_product_twice():
    products = "NVIDIA GeForce RTX 5090, NVIDIA GeForce RTX 5080, NVIDIA GeForce RTX 4090"
    assert catalogue.load().hint("RTX5091") == f"did you mean {products}? any other card: custom:NAME:GiB:smXX"


def test_the_catalogue_holds_models_of_every_family():
    known = catalogue.load()
    assert len(known.all_models()) >= 60
    assert all(known.model(name).name for name in known.all_model_names())


def test_a_quantised_repository_is_a_checkpoint_of_its_base():
    model = catalogue.load().model("nvidia/Llama-3.1-70B-Instruct-FP8")
    assert (model.base, model.asked.weights, model.asked.method) == (
        "meta-llama/Llama-3.1-70B-Instruct",
        "fp8",
        "modelopt",
    )
    assert not model.asked.kv_cache_scheme_known


@pytest.mark.parametrize(
    ("name", "weights", "scheme"),
    [
        ("MiniMaxAI/MiniMax-M2.5", "nvfp4", "fp8"),
        ("moonshotai/Kimi-K2.5", "nvfp4", "fp8"),
        ("meta-llama/Llama-3.1-8B-Instruct", "bf16", None),
    ],
)
def test_a_checkpoint_says_what_its_config_makes_of_auto(name, weights, scheme):
    checkpoint = catalogue.load().model(name).checkpoint(weights)
    assert checkpoint.kv_cache_scheme_known
    assert checkpoint.kv_cache_scheme == scheme


def test_a_model_without_a_known_nvfp4_checkpoint_has_none():
    assert catalogue.load().model("mistralai/Mistral-7B-v0.1").checkpoint("nvfp4") is None


def test_a_private_model_comes_from_the_overlay(overlay):
    (overlay / "models.yaml").write_text(
        "models:\n  - name: team/private-7b\n    source: our own\n    config: {num_hidden_layers: 2}\n"
    )
    assert catalogue.load().model("Team/Private-7B").config == {"num_hidden_layers": 2}


def test_a_hub_repository_is_known_by_its_config(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"num_hidden_layers": 3, "torch_dtype": "float16"}))
    monkeypatch.setattr(model_files, "hub_answers", lambda: True)
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: str(path))
    model = catalogue.load().model("team/on-the-hub")
    assert (model.name, model.config["num_hidden_layers"], model.asked.weights) == ("team/on-the-hub", 3, "fp16")


def test_a_repository_is_unknown_while_the_hub_cannot_be_reached(monkeypatch):
    monkeypatch.setattr(model_files, "hub_answers", lambda: False)
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)
    with pytest.raises(UnknownError) as refusal:
        catalogue.load().model("meta-llama/Llama-3.1-8B-Instrukt")
    assert "cannot be reached" in refusal.value.found
    assert "meta-llama/Llama-3.1-8B-Instruct" in refusal.value.hint


@pytest.mark.parametrize(
    ("quantisation", "expected"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, ("fp8", "fp8", None)),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, ("awq", "awq", None)),
        ({"quant_method": "mxfp4"}, ("mxfp4", "mxfp4", None)),
        ({"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}, ("nvfp4", "modelopt", "nvfp4")),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
                "kv_cache_scheme": {"num_bits": 8, "type": "float"},
            },
            ("nvfp4", "compressed-tensors", "fp8"),
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 4, "type": "int"}}}},
            ("int4", "compressed-tensors", None),
        ),
        ({"quant_method": "something"}, ("unknown", "something", None)),
    ],
)
def test_a_config_says_its_weights_and_what_it_asks_of_the_cache(quantisation, expected):
    found = checkpoint_of_config({"quantization_config": quantisation}, "team/model")
    assert (found.weights, found.method, found.kv_cache_scheme) == expected
    assert found.kv_cache_scheme_known


def test_a_quantised_name_beside_a_silent_config_leaves_both_unknown():
    found = checkpoint_of_config({"torch_dtype": "bfloat16"}, "team/model-NVFP4")
    assert (found.weights, found.kv_cache_scheme_known) == ("unknown", False)
