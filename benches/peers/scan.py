#!/usr/bin/env python3
"""Times faiss (flat f32, 8-bit) and numpy on the rows of the bench `scan`: one thread, k = 10, the same queries.

    cargo run --release -p benches --bin dump_rows            # writes rows and queries to target/bench-data
    python3 -m venv venv
    venv/bin/pip install faiss-cpu==1.15.1 numpy
    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE venv/bin/python benches/peers/scan.py [ROWS]

Each answers all queries one by one, in turn, for some rounds after one that does not count. What is printed is the
least and the median of a query, the median as a multiple of ours where the bench has left it (`ours-ROWS.json`; so
run the bench shortly before), and the share of the exact ten that is found. Rows are of unit length, so the inner
product is the cosine.
"""

import os

# Before numpy and faiss start their threads.
for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = "1"

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import faiss
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DIMENSIONS = 384
# What the exact one is to reach, in multiples of ours; of 100,000 rows.
BAR = "at least 4, aim 7"


def data_folder():
    """Where the Rust side keeps what it makes."""
    if "BENCH_DATA" in os.environ:
        return Path(os.environ["BENCH_DATA"])
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "bench-data"


def load(path):
    """Vectors as `dump_rows` writes them."""
    if not path.exists():
        sys.exit(f"{path} is missing: cargo run --release -p benches --bin dump_rows")
    return np.fromfile(path, dtype="<f4").reshape(-1, DIMENSIONS)


def with_faiss(index, rows):
    """Searches in an index of the rows."""
    if not index.is_trained:
        index.train(rows)
    index.add(rows)
    return lambda query, k: index.search(query.reshape(1, -1), k)[1][0]


def with_numpy(rows):
    """All scores by a matrix product, then the k best of them."""

    def search(query, k):
        scores = rows @ query
        best = np.argpartition(-scores, k)[:k]
        return best[np.argsort(-scores[best], kind="stable")]

    return search


def measure(runners, queries, k, rounds):
    """Milliseconds of each query in each round, by runner, and what was found."""
    times = {name: [] for name in runners}
    found = {name: [] for name in runners}
    for turn in range(rounds + 1):
        for name, search in runners.items():
            for query in queries:
                start = time.perf_counter()
                slots = search(query, k)
                took = 1000 * (time.perf_counter() - start)
                if turn == 0:
                    found[name].append(set(map(int, slots)))
                else:
                    times[name].append(took)
    return times, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="?", type=int, default=100_000)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    if "OPENBLAS_CORETYPE" in os.environ:
        print("OPENBLAS_CORETYPE is set: numpy is slower than it could be", file=sys.stderr)

    folder = data_folder()
    rows, queries = load(folder / f"rows-{args.rows}.f32"), load(folder / "queries.f32")
    faiss.omp_set_num_threads(1)
    exact = "faiss flat f32"
    runners = {
        exact: with_faiss(faiss.IndexFlatIP(DIMENSIONS), rows),
        "faiss 8-bit": with_faiss(
            faiss.IndexScalarQuantizer(DIMENSIONS, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT), rows
        ),
        "numpy f32": with_numpy(rows),
    }
    times, found = measure(runners, queries, args.k, args.rounds)

    ours = None
    kept = folder / f"ours-{args.rows}.json"
    if kept.exists() and args.k == 10:
        ours = json.loads(kept.read_text())["ms"]
    print(f"{len(rows)} rows of {DIMENSIONS} dimensions, k = {args.k}, {len(queries)} queries, one thread; ", end="")
    print(f"faiss {faiss.__version__} ({faiss.get_compile_options().strip()}), numpy {np.__version__}")
    print("ours: " + ("not measured here yet" if ours is None else f"{ours:.3f} ms, as the bench left it"))
    print("\n| | least ms | median ms | times ours | recall | bar |\n| --- | --- | --- | --- | --- | --- |")
    for name, ms in times.items():
        median = statistics.median(ms)
        ratio = "" if ours is None else f"{median / ours:.2f}"
        recall = statistics.mean(len(a & b) / args.k for a, b in zip(found[name], found[exact]))
        bar = BAR if name == exact and args.rows == 100_000 else ""
        print(f"| {name} | {min(ms):.3f} | {median:.3f} | {ratio} | {recall:.3f} | {bar} |")


if __name__ == "__main__":
    main()
