"""usage: tokens_h5py.py PRETRAIN_DATA WORK. h5py reads every dataset of our token files (TAP)."""
import os
import subprocess
import sys

import h5py
import numpy as np

data, work = sys.argv[1:3]
rng = np.random.default_rng(1)
made = failed = 0


def ok(holds, name):
    global made, failed
    made += 1
    failed += not holds
    print("ok" if holds else "not ok", made, "-", name)


def run(*args):
    return subprocess.run([data, *args], capture_output=True, text=True).returncode == 0


def path(name):
    return os.path.join(work, name)


def check_import(n, vocab, dtype, name):
    """A raw stream with starts, read back by name, place and value."""
    ids = rng.integers(0, vocab, n)
    starts = np.unique(np.r_[0, rng.integers(0, n, n // 50)]).astype("<i8")
    ids.astype(dtype).tofile(path("raw"))
    starts.tofile(path("starts"))
    good = run("import", "--dtype", np.dtype(dtype).name, "--vocab-size", str(vocab), "--eod", "-1", "--documents",
               path("starts"), "-o", path("a.h5"), path("raw"))
    with h5py.File(path("a.h5"), "r") as f:
        tokens, documents = f["tokens"], f["documents"]
        stored = np.dtype("<u2" if vocab <= 65536 else "<u4")
        ok(good and tokens.dtype == stored and (tokens[:] == ids).all(), name + ": tokens")
        ok(documents.dtype == "<i8" and (documents[:] == starts).all(), name + ": documents")
        ok(dict(f.attrs, tokens_xxh3="") == dict(format=b"pretrain tokens", format_version=1, vocab_size=vocab,
           end_of_document=-1, ntokens=n, ndocuments=len(starts), tokens_xxh3=""), name + ": attributes")
        ok(set(f) == {"tokens", "documents"} and tokens.chunks is None, name + ": contiguous, no more datasets")
        at = tokens.id.get_offset()
    raw = np.fromfile(path("a.h5"), stored, n, offset=at)
    ok((raw == ids).all() and (n < 40000 or at % (1 << 20) == 0), name + ": the bytes lie where HDF5 says")


def check_text():
    text = "One text.\nAnother line: \u00e4\u20ac\U0001f600\0.\n" * 3000
    with open(path("a.txt"), "w", newline="") as f:
        f.write(text)
    good = run("tokenize", "--tokenizer", "bytes", "-o", path("t.h5"), path("a.txt"))
    with h5py.File(path("t.h5"), "r") as f:
        ids = f["tokens"][:]
        json = bytes(f["tokenizer_json"][:]).decode()
        ok(good and ids[-1] == 256 and bytes(ids[:-1].astype(np.uint8)).decode() == text, "text round trip")
        ok('"<|endoftext|>"' in json and f["tokenizer_json"].dtype == np.uint8, "the tokenizer is inside")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        ok(True, "the tokenizers library gives the same ids # SKIP no tokenizers")
        return
    ok(Tokenizer.from_str(json).encode(text).ids == list(ids[:-1]), "the tokenizers library gives the same ids")


def check_written_by_h5py():
    """h5py writes what we read, if it keeps to the format."""
    with h5py.File(path("w.h5"), "w") as f:
        f["tokens"] = np.arange(100, dtype="<u2")
        f["documents"] = np.array([0, 10, 40], "<i8")
        f.attrs["format"] = "pretrain tokens"
        f.attrs["tokens_xxh3"] = "0" * 32
        for name, value in dict(format_version=1, vocab_size=100, end_of_document=-1, ntokens=100,
                                ndocuments=3).items():
            f.attrs[name] = value
    ok(run("info", path("w.h5")) and not run("check", path("w.h5")), "a file by h5py is read; its hash is not believed")


print("1..19")
check_import(1, 10, "uint16", "one token")
check_import(300000, 65536, "uint16", "uint16")
check_import(200000, 70000, "int64", "uint32")
check_text()
check_written_by_h5py()
sys.exit(failed > 0 or made != 19)
