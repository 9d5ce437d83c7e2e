"""Sets from vLLM itself, with a small model with random weights; `make test-vllm` runs this in its own environment."""

import os
from copy import copy
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch

vllm = pytest.importorskip("vllm", reason="vLLM has an environment of its own: make test-vllm")

from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext  # noqa: E402

from setaug import SetCodec  # noqa: E402
from setaug.decoding.set_request import LISTS_VARIABLE  # noqa: E402
from setaug.models.neural.constraint import SetConstraint  # noqa: E402
from setaug.serving.vllm_processor import SetLogitsProcessor  # noqa: E402
from tests.tiny import LABELS, make_tokenizer  # noqa: E402

NAMES = [label for label in LABELS if label.strip() == label and "\n" not in label]
PROMPTS = [f"{'the zoo has a volleyball event , ' * 6}{number} ; " for number in range(6)]
"""They share more than a block of the cache, and are longer than a step."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A causal model of a few weights."""
    path = tmp_path_factory.mktemp("model")
    tokenizer = make_tokenizer("bytes")
    torch.manual_seed(0)
    ids = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    config = LlamaConfig(
        vocab_size=len(tokenizer) + 7,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        initializer_range=0.5,
        **ids,
    )
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    (path / "names.txt").write_text("\n".join(NAMES), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def llm(folder):
    """An engine with so little memory that requests are preempted, and short steps, so that prompts are cut."""
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", LISTS_VARIABLE: str(folder)}
    os.environ.update(own)
    made = vllm.LLM(
        str(folder),
        dtype="float32",
        enforce_eager=True,
        max_model_len=256,
        max_num_batched_tokens=64,
        max_num_seqs=16,
        block_size=32,
        num_gpu_blocks_override=16,
        enable_prefix_caching=True,
        enable_chunked_prefill=True,
        disable_log_stats=False,
    )
    yield made
    del os.environ[LISTS_VARIABLE]


def params(**changes):
    extra = {name: changes.pop(name) for name in list(changes) if name.startswith("set_")}
    return vllm.SamplingParams(**{"temperature": 0, "max_tokens": 200, **changes}, extra_args=extra or None)


def texts(outputs):
    return [one.text for output in outputs for one in output.outputs]


@pytest.mark.parametrize("form", ["separated", "json"])
def test_answers_are_sets_of_the_size_asked_for(llm, form):
    codec = SetCodec(written_as=form)
    for sizes in (1, 3, [2, 5]):
        outputs = llm.generate(PROMPTS, params(set_labels=NAMES, set_sizes=sizes, set_form=form), use_tqdm=False)
        for text in texts(outputs):
            read = codec.decode(text)
            assert not read.repeated
            assert set(read.labels) <= set(NAMES)
            assert len(read.labels) == read.size
            assert read.size in ([sizes] if isinstance(sizes, int) else sizes)


def test_answers_are_those_of_the_constraint_with_transformers(llm, folder):
    tokenizer, model = make_tokenizer("bytes"), LlamaForCausalLM.from_pretrained(folder)
    constraint = SetConstraint.for_model(model, tokenizer, NAMES, sizes=[3])
    outputs = llm.generate(PROMPTS, params(set_labels="names", set_sizes=3), use_tqdm=False)
    for prompt, found in zip(PROMPTS, texts(outputs), strict=True):
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        constraint.start = ids.shape[1]
        options = {"max_new_tokens": constraint.max_new_tokens, "logits_processor": [constraint]}
        row = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **options)[0]
        assert found == tokenizer.decode(row[ids.shape[1] :], skip_special_tokens=True)


def test_preempted_requests_give_the_sets_that_they_give_alone(llm):
    many = params(set_labels=NAMES, set_sizes=10)
    alone = [texts(llm.generate([prompt], many, use_tqdm=False))[0] for prompt in PROMPTS]
    assert texts(llm.generate(PROMPTS, many, use_tqdm=False)) == alone
    counted = {metric.name: getattr(metric, "value", 0) for metric in llm.get_metrics()}
    assert counted["vllm:num_preemptions"] > 0
    assert counted["vllm:prefix_cache_hits"] > 0


def test_each_of_several_answers_is_a_set(llm):
    several = params(set_labels=NAMES, set_sizes="1-4", n=6, temperature=2.0)
    codec = SetCodec()
    found = texts(llm.generate(PROMPTS[:3], several, use_tqdm=False))
    assert len(found) == 18
    assert len(set(found)) > 3
    assert all(len(codec.decode(text).labels) == codec.decode(text).size in range(1, 5) for text in found)


def test_any_labels_are_sets_too(llm):
    drawn = params(set_labels="*", set_sizes=3, temperature=1.0)
    for text in texts(llm.generate(PROMPTS[:4], drawn, use_tqdm=False)):
        read = SetCodec().decode(text)
        assert (read.size, len(read.labels), read.repeated) == (3, 3, ())


def test_other_requests_in_the_batch_stay_as_they_are(llm):
    free = params(max_tokens=8, logprobs=3)
    before = llm.generate(PROMPTS[:4], free, use_tqdm=False)
    mixed = llm.generate(
        [*PROMPTS[:4], *PROMPTS[:4]], [free] * 4 + [params(set_labels=NAMES, set_sizes=2)] * 4, use_tqdm=False
    )[:4]
    for one, other in zip(before, mixed, strict=True):
        assert one.outputs[0].token_ids == other.outputs[0].token_ids
        assert one.outputs[0].logprobs == other.outputs[0].logprobs


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"set_labels": []}, "must not be empty"),
        ({"set_labels": ["x", " "]}, "blank label"),
        ({"set_labels": "absent"}, "no list of labels named"),
        ({"set_labels": ["x"], "set_sizes": 2}, "there are only 1"),
        ({"set_labels": ["x"], "set_sizes": -1}, "set_sizes must be"),
        ({"set_labels": ["x"], "set_form": "xml"}, "set_form must be one of separated, json"),
        ({"set_labels": ["x"], "set_colour": 1}, "unknown parameter set_colour"),
        ({"set_sizes": 2}, "set_labels is missing"),
        ({"set_labels": ["x"], "ignore_eos": True}, "a set ends"),
        ({"set_labels": ["x"], "allowed_token_ids": [5]}, "takes no allowed_token_ids"),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(llm, bad, message):
    with pytest.raises(VLLMValidationError, match=message):
        llm.generate(PROMPTS[:1], params(**bad), use_tqdm=False)
    assert texts(llm.generate(PROMPTS[:1], params(set_labels=["x"], set_sizes=1), use_tqdm=False)) == ["1 | x"]


@pytest.mark.parametrize("label", ["a</s>b", "a<pad>"])
def test_labels_that_the_tokenizer_cannot_write_end_the_answer_not_the_server(llm, label):
    written = params(set_labels=["x", label], set_form="json")
    assert texts(llm.generate(PROMPTS[:1], written, use_tqdm=False)) == [""]
    assert texts(llm.generate(PROMPTS[:1], params(set_labels=["x"], set_sizes=1), use_tqdm=False)) == ["1 | x"]


def test_other_settings_choose_among_sets_only(llm):
    for others in ({"min_tokens": 90}, {"bad_words": NAMES}, {"logit_bias": {5: 100.0}}, {"repetition_penalty": 1.9}):
        (text,) = texts(llm.generate(PROMPTS[:1], params(set_labels=NAMES, set_sizes=3, **others), use_tqdm=False))
        read = SetCodec().decode(text)
        assert (read.size, len(read.labels), read.repeated) == (3, 3, ()), others
        assert set(read.labels) <= set(NAMES)


@dataclass
class Held:
    """One of the buffers that the model runner shares: the same numbers for host and device."""

    np: np.ndarray

    @property
    def gpu(self):
        return torch.from_numpy(self.np)


@dataclass
class Requests:
    """What version 2 of the interface shows of the requests."""

    all_token_ids: Held
    prompt_len: Held
    prefill_len: Held


def test_version_2_of_the_interface_follows_slots_chunks_and_resumption(llm):
    tokenizer = make_tokenizer("bytes")
    slots = Requests(*(Held(np.zeros(shape, np.int32)) for shape in ((8, 64), 8, 8)))
    processor = SetLogitsProcessor(llm.llm_engine.vllm_config, slots)
    constraint = SetConstraint(tokenizer, NAMES, sizes=[3])
    generator = torch.Generator().manual_seed(0)
    prompt, answer = [5, 6, 7], []

    def apply(order, length):
        context = LogitsContext(
            expanded_idx_mapping=torch.tensor(order),
            idx_mapping=torch.tensor(order),
            idx_mapping_np=np.array(order),
            expanded_local_pos=torch.zeros(len(order)),
            input_ids=torch.tensor([slots.all_token_ids.np[slot, length - 1] for slot in order]),
            pos=torch.full((len(order),), length - 1),
            seq_lens_upper_bound_np=np.full(len(order), length),
        )
        scores = torch.randn(len(order), len(tokenizer) + 7, generator=generator)
        return scores, processor.apply(scores.clone(), context)

    def begin(slot):
        slots.prompt_len.np[slot] = len(prompt)
        slots.prefill_len.np[slot] = len(prompt) + len(answer)
        slots.all_token_ids.np[slot, : len(prompt) + len(answer)] = [*prompt, *answer]
        assert processor.add_request(slot, params(set_labels=NAMES, set_sizes=3))
        assert not processor.add_request(1, params())

    begin(4)
    before, after = apply([4, 1], 2)  # a part of the prompt
    assert torch.equal(before, after)
    slot = 4
    for step in range(60):
        if step == 5:  # preempted, and added again to another slot
            slot = 2
            begin(slot)
        row, other = (0, 1) if step % 2 else (1, 0)
        before, after = apply([slot, 1] if row == 0 else [1, slot], len(prompt) + len(answer))
        assert torch.equal(before[other], after[other])
        expected = constraint(torch.tensor([prompt + answer]), before[[row]]) if constraint.start else None
        constraint.start = len(prompt)
        if expected is not None:
            assert torch.equal(expected[0], after[row])
        token = int(after[row].argmax())
        slots.all_token_ids.np[slot, len(prompt) + len(answer)] = token
        answer.append(token)
        if token == tokenizer.eos_token_id:
            break
    labels, size = constraint.read(answer)
    assert (len(labels), size) == (3, 3)


def test_version_2_of_the_interface_ends_the_answer_where_tokens_are_drafted(llm):
    config = copy(llm.llm_engine.vllm_config)
    config.speculative_config = object()
    processor = SetLogitsProcessor(config, None)
    assert processor.add_request(4, params(set_labels=NAMES))
    context = SimpleNamespace(expanded_idx_mapping=torch.tensor([1, 4, 4, 7]))
    before = torch.randn(4, len(make_tokenizer("bytes")) + 7)
    after = processor.apply(before.clone(), context)
    assert torch.equal(before[[0, 3]], after[[0, 3]])
    end = make_tokenizer("bytes").eos_token_id
    assert [row.isfinite().nonzero().flatten().tolist() for row in after[1:3]] == [[end], [end]]
