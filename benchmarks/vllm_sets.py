"""Ask a server for sets, 64 requests at once, with the constraint and without, in one run.

    export SETAUG_LABELS=LISTS                                   # a folder; the lists are written into it
    python benchmarks/vllm_sets.py lists LISTS                   # before the server starts
    vllm serve MODEL --dtype float32 --enforce-eager --max-model-len 512
    python benchmarks/vllm_sets.py ask http://localhost:8000/v1 TEXTS.jsonl [--compare http://localhost:8001/v1]

    python benchmarks/vllm_sets.py predict http://localhost:8000/v1 TEXTS.jsonl --model MODEL

MODEL is a causal model of ``setaug train``. Speed is in tokens a second; answers without the constraint are made as
long as those with it. ``--compare`` sends the same requests to `setaug serve`, and counts equal answers. ``predict``
sends the prompts of `SetGenerator.predict`, as tokens, with the model's own labels and sizes, and compares sets per
second with those of ``predict`` in this process.
"""

import argparse
import asyncio
import os
import time
from pathlib import Path

from constraint import make_labels
from openai import AsyncOpenAI

from setaug import SetCodec, SetGenerator, read_examples
from setaug.decoding.set_request import SetRequest
from setaug.settings import Decoding

COUNTS = (30, 3_000, 30_000)


def write_lists(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for count in COUNTS:
        (folder / f"labels{count}.txt").write_text("\n".join(make_labels(count)) + "\n", encoding="utf-8")


async def ask_all(
    url: str, texts: list[str], xargs: dict[str, object] | None, session: int | None = None, length: int = 48
) -> tuple[float, int, list[str]]:
    async with AsyncOpenAI(base_url=url, api_key="none", timeout=600, max_retries=0) as client:
        model = (await client.models.list()).data[0].id

        async def one(text: str) -> tuple[str, int]:
            body = {"ignore_eos": True} if xargs is None else {"vllm_xargs": xargs}
            messages = [{"role": "user", "content": text}]
            found = await client.chat.completions.create(
                model=model, messages=messages, temperature=0, max_tokens=length, extra_body=body
            )
            return found.choices[0].message.content or "", found.usage.completion_tokens

        start = cpu_seconds(session)
        answers = await asyncio.gather(*map(one, texts))
        return cpu_seconds(session) - start, sum(n for _, n in answers), [text for text, _ in answers]


async def complete_all(
    url: str, prompts: list[list[int]], xargs: dict[str, object], length: int, session: int | None
) -> tuple[float, list[str]]:
    async with AsyncOpenAI(base_url=url, api_key="none", timeout=1200, max_retries=0) as client:
        model = (await client.models.list()).data[0].id

        async def one(prompt: list[int]) -> str:
            options = {"temperature": 0, "max_tokens": length, "extra_body": {"vllm_xargs": xargs}}
            found = await client.completions.create(model=model, prompt=prompt, **options)
            return found.choices[0].text

        start = cpu_seconds(session)
        answers = await asyncio.gather(*map(one, prompts))
        return cpu_seconds(session) - start, answers


def compare_with_predict(options: argparse.Namespace, texts: list[str]) -> None:
    """Compare sets per second with those of `SetGenerator.predict`."""
    import torch

    torch.set_num_threads(1)
    model = SetGenerator.from_pretrained(options.model)
    writer = model.network_
    prompts, _ = writer.layout.read(texts)
    sizes = Decoding().sizes(writer.largest)
    length = writer.constraint(sizes).max_new_tokens
    request = SetRequest(labels=tuple(writer.labels or ()), sizes=tuple(sizes), codec=writer.codec).parameters()
    asyncio.run(complete_all(options.place, prompts[:1], request, length, None))  # the constraint is made once
    model.predict(texts[:1], choose="written")
    for _ in range(options.repeat):
        theirs, answers = asyncio.run(complete_all(options.place, prompts, request, length, options.session))
        start = time.perf_counter() if options.session is None else time.process_time()
        found = model.predict(texts, choose="written", batch_size=options.requests)
        ours = (time.perf_counter() if options.session is None else time.process_time()) - start
        pairs = zip(answers, found, strict=True)
        same = sum(writer.codec.decode(answer).labels == one.labels for answer, one in pairs)
        print(
            f"{len(texts)} texts: {len(texts) / theirs:.2f} sets/s of the server, {len(texts) / ours:.2f} of predict, "
            f"ratio {ours / theirs:.2f}; the same set for {same}",
            flush=True,
        )


def cpu_seconds(session: int | None) -> float:
    """Return the CPU time of all processes of a session, or the time of day without one."""
    if session is None:
        return time.perf_counter()
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        ticks += int(fields[11]) + int(fields[12]) if int(fields[3]) == session else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def n_sets(answers: list[str], labels: list[str], size: int) -> int:
    """Count the answers that are sets of known labels of the size."""
    reads = [SetCodec().decode(answer) for answer in answers]
    known = set(labels)
    return sum(
        read.size == size == len(read.labels) and not read.repeated and set(read.labels) <= known for read in reads
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=("lists", "ask", "predict"))
    parser.add_argument("place")
    parser.add_argument("texts", nargs="?")
    parser.add_argument("--model", metavar="FOLDER", help="the model that the server has, for predict")
    parser.add_argument("--compare", metavar="URL")
    parser.add_argument("--session", type=int, help="count the CPU time of this session's processes, on a busy machine")
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    if options.task == "lists":
        write_lists(Path(options.place))
        return
    texts = [example.text for example in read_examples(Path(options.texts))][: options.requests]
    if options.task == "predict":
        compare_with_predict(options, texts)
        return
    asyncio.run(ask_all(options.place, texts, None))  # so that the prompts are in the server's cache for all runs
    for count in COUNTS:
        xargs: dict[str, object] = {"set_labels": f"labels{count}", "set_sizes": options.size}
        asyncio.run(ask_all(options.place, texts[:1], xargs))  # the constraint is made once
        for _ in range(options.repeat):
            ours, n_ours, answers = asyncio.run(ask_all(options.place, texts, xargs, options.session))
            length = round(n_ours / len(texts))
            plain, n_plain, _ = asyncio.run(ask_all(options.place, texts, None, options.session, length))
            print(
                f"{count:,} labels: {n_sets(answers, make_labels(count), options.size)} of {len(texts)} answers are "
                f"sets of {options.size}; {n_plain / plain:.1f} tokens/s without, {n_ours / ours:.1f} with, "
                f"ratio {n_ours / ours / (n_plain / plain):.2f}",
                flush=True,
            )
        if options.compare:
            _, _, others = asyncio.run(ask_all(options.compare, texts, xargs))
            same = sum(one == other for one, other in zip(answers, others, strict=True))
            print(f"  the same answer of {options.compare}: {same} of {len(texts)}", flush=True)


if __name__ == "__main__":
    main()
