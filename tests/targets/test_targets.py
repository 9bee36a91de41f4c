import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.errors import UsageError
from nvdash.targets import HEAD_KINDS, Checkpoint, HeadLayout, Model

LAYOUTS = st.builds(
    lambda kind, group, kv, *sizes, **marks: HeadLayout(kind, group * kv, kv, *sizes, **marks),
    st.sampled_from(HEAD_KINDS),
    st.integers(1, 64),
    *[st.integers(1, 4096)] * 3,
    window=st.none() | st.integers(1, 131_072),
    sinks=st.booleans(),
)


@given(LAYOUTS)
def test_a_head_layout_reads_back_as_it_was_written(layout):
    assert HeadLayout.parse(str(layout)) == layout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gqa:64/8x128", HeadLayout("gqa", 64, 8, 128, 128)),
        ("mla:128/1x576/512", HeadLayout("mla", 128, 1, 576, 512)),
        ("hybrid_swa:64/8x64,window=128,sinks", HeadLayout("hybrid_swa", 64, 8, 64, 64, 128, True)),
    ],
)
def test_head_layouts_of_known_models(text, expected):
    assert HeadLayout.parse(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    "text", ["", "gqa", "gqa:64/8", "grouped:64/8x128", "gqa:0/8x128", "gqa:64/8x128,sink", "gqa:7/3x128"]
)
def test_a_layout_that_does_not_read_is_refused_with_the_grammar(text):
    with pytest.raises(UsageError) as refusal:
        HeadLayout.parse(text)
    assert "KIND:QUERY_HEADS/KV_HEADSxKEY_SIZE" in refusal.value.expected


def test_the_checkpoint_that_was_asked_for_by_name_comes_first():
    known, asked = Checkpoint("fp8", "a/known"), Checkpoint("fp8", "b/asked", method="modelopt")
    model = Model("m", "m", {}, (known,), asked=asked)
    assert model.checkpoint("fp8") is asked
    assert model.checkpoint("modelopt") is asked
    assert model.checkpoint("nvfp4") is None
