#!/usr/bin/env python3
"""Writes a few megabytes of English prose as jsonl, one chapter a line: {"title": "Gen 1", "text": "..."}.

The text is the World English Bible (public domain) of Debian's package sword-text-web, which needs no other
package. Its books are zlib blocks of OSIS, an XML of milestones: NAME.bzs lists (offset, packed size, size) of the
blocks in NAME.bzz as little-endian 32-bit numbers."""
import argparse
import html
import json
import os
import re
import struct
import sys
import zlib

PACKAGE = "sword-text-web"
FOLDER = "/usr/share/sword/modules/texts/ztext/engWEB2015eb"

# In this order: what goes with its contents, what becomes a paragraph or a line, all other tags.
RULES = [
    (r"\s+", " "),
    (r"<note\b.*?</note>", " "),
    (r"<speaker>.*?</speaker>", " "),
    (r"<title(?![^>]*canonical)[^>]*>.*?</title>", " "),
    (r"<div[^>]*sID[^>]*type=\"x-p\"[^>]*>|<lb\b[^>]*>|<lg\b[^>]*>|</?title[^>]*>", "\n\n"),
    (r"<l\b[^>]*sID[^>]*>|<item\b[^>]*>", "\n"),
    (r"<[^>]*>", ""),
    (r" *\n *", "\n"),
    (r"\n{3,}", "\n\n"),
    (r"  +", " "),
    (r" +([,.;:!?’”])", r"\1"),
]


def blocks(folder, name):
    """The texts of one testament, in order."""
    with open(os.path.join(folder, name + ".bzs"), "rb") as f:
        index = f.read()
    with open(os.path.join(folder, name + ".bzz"), "rb") as f:
        packed = f.read()
    for offset, size, _ in struct.iter_unpack("<III", index):
        yield zlib.decompress(packed[offset:offset + size]).decode("utf-8")


def chapters(osis):
    """(title, markup) of every chapter; what lies outside chapters (prefaces, glossary) is left out."""
    for m in re.finditer(r'<chapter [^>]*sID="([^"]+)"\s*/>(.*?)(?=<chapter )', osis, re.S):
        yield m.group(1).replace(".", " "), m.group(2)


def plain(markup):
    for pattern, text in RULES:
        markup = re.sub(pattern, text, markup, flags=re.S)
    return html.unescape(markup).strip()


def documents(folder):
    for name in "ot", "nt":
        for title, markup in chapters("".join(blocks(folder, name)) + "<chapter "):
            text = plain(markup)
            if text:
                yield {"title": title, "text": text}


def write(path, folder):
    beside = path + ".tmp"
    count = size = 0
    with open(beside, "w", encoding="utf-8", newline="\n") as f:
        for document in documents(folder):
            f.write(json.dumps(document, ensure_ascii=False) + "\n")
            count += 1
            size += len(document["text"].encode("utf-8"))
    os.replace(beside, path)
    return count, size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, metavar="OUT.jsonl")
    parser.add_argument("--from", dest="folder", default=FOLDER, metavar="FOLDER",
                        help="where the package put its text [%(default)s]")
    args = parser.parse_args()
    if not os.path.exists(os.path.join(args.folder, "ot.bzs")):
        sys.exit(f"{args.folder}: no text there; install it with: apt-get install {PACKAGE}")
    try:
        os.makedirs(os.path.dirname(args.output) or ".", exist_ok=True)
        count, size = write(args.output, args.folder)
    except OSError as e:
        sys.exit(f"{args.output}: {e}")
    if count == 0:
        sys.exit(f"{args.folder}: no chapters found; is it the text of {PACKAGE}?")
    print(f"{args.output}: {count:,} chapters, {size:,} bytes of text: the World English Bible (public domain) of {PACKAGE}")


if __name__ == "__main__":
    main()
