# tools/prose.py on a small module made here: chapters, no markup, no notes
. "${srcdir:-.}/tests/lib.sh"
python=${PYTHON:-python3}
"$python" -c 'import zlib' 2>/dev/null || tap_skip_all "no Python"
prose="$srcdir/tools/prose.py"
cd "$work" || exit 1
tap_plan 6
mkdir module
"$python" - <<'END'
import struct, zlib
books = {
    "ot": ['<milestone n="x"/>', '<div type="book" sID="a"/> <title level="1" type="main">Genesis</title>'
           '<chapter n="1" osisID="Gen.1" sID="Gen.1"/> <div sID="g1" type="x-p"/><w lemma="s:H1">In</w> the beginning, '
           '<w>God</w><note placement="foot"><reference>1:1 </reference>A note.</note><w>created</w> &amp; <w>saw</w>'
           '<note>x</note>.<div eID="g1" type="x-p"/> <div sID="g2" type="x-p"/>“Let there be\nlight,” he said.'
           '<chapter eID="Gen.1"/><chapter n="2" osisID="Gen.2" sID="Gen.2"/><title>BOOK</title> <lg sID="l"/>'
           '<l level="1" sID="l1"/>One line,<l eID="l1"/> <l level="2" sID="l2"/>another.<chapter eID="Gen.2"/> outside'],
    "nt": ['<chapter osisID="Matt.1" sID="Matt.1"/><q who="x">Last.</q><chapter eID="Matt.1"/>'],
}
for name, blocks in books.items():
    packed, index = b"", b""
    for b in blocks:
        z = zlib.compress(b.encode())
        index += struct.pack("<III", len(packed), len(z), len(b.encode()))
        packed += z
    open(f"module/{name}.bzs", "wb").write(index)
    open(f"module/{name}.bzz", "wb").write(packed)
END
tap_run 'run' "$python" "$prose" --from module -o prose.jsonl
tap_match 'counts' 'prose.jsonl: 3 chapters, 95 bytes'
cat >want <<'END'
{"title": "Gen 1", "text": "In the beginning, God created & saw.\n\n“Let there be light,” he said."}
{"title": "Gen 2", "text": "One line,\nanother."}
{"title": "Matt 1", "text": "Last."}
END
tap_run 'chapters as expected' cmp want prose.jsonl
tap_run 'they make tokens' "$builddir/pretrain-data" tokenize --tokenizer bytes -o a.h5 prose.jsonl
tap_exit 'without the package' 1 "$python" "$prose" --from absent -o other.jsonl
tap_match 'says what to install' 'apt-get install sword-text-web'
tap_done
