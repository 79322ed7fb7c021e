"""pretrain-data tokenize: the same file for any number of threads and ranks; packed files, folders, standard input; lines,
duplicates, bytes that are not UTF-8. Going on after a kill is in tokenize_resume.py."""

from tokenize_case import *


def trained(c, pattern):
    c.write('corpus.txt', prose(7, 300000))
    r = run(['pretrain-data', 'tokenizer', 'train', '--vocab-size', 1200, '--pattern', pattern, '-o', c.path(pattern + '.json'), c.path('corpus.txt')])
    return c.path(pattern + '.json') if r.returncode == 0 else last(r)


def test_layouts(c):
    texts = [prose(i, random.Random(i).choice([0, 10, 500, 5000, 40000])) for i in range(300)]
    texts += texts[5:60]
    jsonl = c.lines('mix/b.jsonl', texts, more=[1, {'x': None}])
    c.write('mix/a.txt', prose(1000, 3 * BATCH))
    c.write('mix/c.txt.gz', gzip.compress(prose(1001, 4 * BATCH).encode(), 1))
    c.write('mix/d.txt', prose(1000, 3 * BATCH))
    tokenizer = trained(c, 'gpt2')
    args = ['--drop-duplicates', '--validation-fraction', '0.1', '--validation-output', c.path('v.h5')]
    for n, threads in [(0, 1), (0, 2), (0, 5), (1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 2)]:
        r = c.go(c.path('mix'), n=n, tokenizer=tokenizer, args=[*args, '--threads', threads])
        if (n, threads) == (0, 1):
            os.rename(c.path('out.h5'), c.path('first.h5')), os.rename(c.path('v.h5'), c.path('first_v.h5'))
            dropped = len(texts) - len(set(texts)) + 1
            c.tap.ok(f'duplicates dropped: {dropped}\n' in r.stdout, 'duplicates: of lines, and of a long text')
            continue
        c.tap.ok(c.same('first.h5', 'out.h5') and c.same('first_v.h5', 'v.h5'), f'{n} ranks, {threads} threads: the same files')
    c.go(jsonl, args=['--threads', '2'])
    c.tap.ok(c.documents() == [t.encode() for t in texts], 'the documents are the texts, in order')
    kept = list(dict.fromkeys(texts))
    c.go(jsonl, args=[*args, '--threads', '2'])
    f = [(d + 1) // 10 > d // 10 for d in range(len(kept))]
    c.tap.ok(
        c.documents('v.h5') == [t.encode() for t, held in zip(kept, f) if held]
        and c.documents() == [t.encode() for t, held in zip(kept, f) if not held],
        'the split counts documents that are kept',
    )


def test_parts(c):
    """A long text in parts has the ids of the same text as a whole."""
    for seed, pattern in enumerate(['gpt2', 'llama3', 'qwen2']):
        tokenizer = trained(c, pattern)
        for name, breaks in [('words', (' ', '\n', '  ', '\n\n')), ('lines', ('\n', '\n\n', '\n \n', '  \n', '\u3000')), ('nothing', ('-',))]:
            text = prose(seed, 5 * BATCH // 2, breaks)
            c.go(c.write('long.txt', text), out='parts.h5', tokenizer=tokenizer)
            c.go(c.lines('whole.jsonl', [text]), out='whole.h5', tokenizer=tokenizer)
            c.tap.ok(c.same('parts.h5', 'whole.h5'), f'{pattern}: a text of {name} in parts')


def zstd_frame(data, block=100000):
    """Of raw blocks, no checksum: what any zstd unpacks."""
    out = b'\x28\xb5\x2f\xfd\x00\x70'
    blocks = [data[i : i + block] for i in range(0, len(data), block)] or [b'']
    for i, b in enumerate(blocks):
        out += (len(b) << 3 | (i == len(blocks) - 1)).to_bytes(3, 'little') + b
    return out


def test_packed(c):
    data = prose(3, 700000).encode()
    c.go(c.write('plain.txt', data), out='plain.h5')
    gz = lambda b: gzip.compress(b, 6, mtime=0)
    packed = {
        'gzip': gz(data),
        'members of gzip': gz(data[:1000]) + gz(b'') + gz(data[1000:500000]) + gz(data[500000:]),
        'gzip filled up with zeros': gz(data) + bytes(700),
    }
    has_zstd = 'no libzstd' not in c.go(c.write('z.txt', zstd_frame(data)), code=0 if zstd() else 2).stderr
    if has_zstd:
        packed['frames of zstd'] = zstd_frame(data[:300000]) + b'\x51\x2a\x4d\x18\x03\x00\x00\x00abc' + zstd_frame(data[300000:])
    for name, b in packed.items():
        c.go(c.write('packed.txt.x', b), args=['--threads', '2'])
        c.tap.ok(c.same('plain.h5', 'out.h5'), name)
    c.go('-', stdin=packed['gzip'], args=['--format', 'text'])
    c.tap.ok(c.same('plain.h5', 'out.h5'), 'gzip on standard input')
    whole, bad = packed['gzip'], bytearray(packed['gzip'])
    for cut in [5, 11, len(whole) // 2, len(whole) - 9, len(whole) - 1]:
        c.refused(f'gzip cut at {cut - len(whole)}', 3, ['cut.gz: the gzip data ends too early', 'truncated'], c.write('cut.gz', whole[:cut]))
    bad[len(bad) // 2] ^= 0x55
    c.refused('gzip damaged', 3, ['bad.gz: the gzip data is damaged near byte'], c.write('bad.gz', bytes(bad)))
    c.refused('behind gzip no gzip', 3, ['is damaged near byte'], c.write('bad.gz', whole + b'hello'))
    if has_zstd:
        frame = zstd_frame(data)
        c.refused('zstd cut', 3, ['the zstd data ends too early'], c.write('cut.zst', frame[:-5]))
        c.refused('behind zstd no zstd', 3, ['the zstd data is damaged near byte'], c.write('bad.zst', frame + b'hello!'))
    elif zstd():
        c.tap.ok(False, 'zstd is read')
    else:
        c.refused('zstd without libzstd', 2, ['z.zst: ', 'no libzstd'], c.write('z.zst', zstd_frame(data)))


def zstd():
    with open(os.path.join(BIN, 'config.h')) as f:
        return '#define HAVE_ZSTD 1' in f.read()


def test_folders(c):
    for name, text in {'f/b/z.md': 'z', 'f/a.txt': 'a', 'f/b.JSONL': '{"text":"j"}\n', 'f/.hidden.txt': 'no', 'f/b/.d/x.txt': 'no',
                       'f/b/a.ndjson': '{"text":"n"}\n', 'f/c.csv': 'no', 'f/d.pdf': 'no', 'f/B.txt': 'B', 'f/e.txt': ''}.items():
        c.write(name, text)
    c.write('f/z.json.gz', gzip.compress(b'{"text":"g"}'))
    r = c.go(c.path('f'), c.path('f', 'a.txt'))
    c.tap.ok(c.documents() == [b'B', b'a', b'n', b'z', b'j', b'g', b'a'], 'folders in the order of names, without hidden ones')
    c.tap.ok('2 files that do not end in' in r.stdout and 'c.csv, d.pdf' in r.stdout and '1 empty file' in r.stdout, 'what was passed over is said')
    c.write('none/x.csv', 'a')
    c.refused('a folder without texts', 3, ['none: a folder without a text', '.txt, .md'], c.path('none'))
    os.makedirs(c.path('loop'))
    c.write('loop/a.txt', 'a')
    os.symlink('..', c.path('loop', 'up'))
    c.refused('a folder in itself', 3, ['link'], c.path('loop'))
    c.refused('an absent input', 3, ['nowhere'], c.path('nowhere'))


def test_stdin(c):
    c.refused('standard input without a format', 2, ['--format text, jsonl'], '-', stdin=b'a')
    c.refused('standard input twice', 2, ['only once'], '-', '-', stdin=b'a', args=['--format', 'text'])
    c.refused('an unknown format', 2, ['text|jsonl|lines'], '-', stdin=b'a', args=['--format', 'csv'])
    c.refused('nothing on standard input', 3, ['standard input: empty'], '-', stdin=b'', args=['--format', 'text'])
    c.refused('a bad line on standard input', 3, ['standard input:2: not JSON'], '-', stdin=b'{"text":"a"}\n{\n', args=['--format', 'jsonl'])
    c.refused('a text to be hashed first', 2, ['--drop-duplicates', 'standard input'], '-', stdin=b'a', args=['--format', 'text', '--drop-duplicates'])
    c.go('-', stdin=b'{"text":"a"}\n{"text":"b"}\n{"text":"a"}', args=['--format', 'jsonl', '--drop-duplicates'])
    c.tap.ok(c.documents() == [b'a', b'b'], 'JSON lines on standard input')
    text = 'one\n\n two \r\n\r\nthr\u00e4\nlast'
    r = c.go(c.write('lines.txt', text), args=['--format', 'lines'])
    c.tap.ok(c.documents() == ['one'.encode(), b' two ', 'thr\u00e4'.encode(), b'last'], 'lines are documents')
    c.tap.ok('empty lines passed over: 2\n' in r.stdout, 'empty lines are counted')
    many = [prose(i, 3000, (' ',)) .replace('\n', ' ').replace('\r', '') or 'x' for i in range(400)]
    c.go('-', stdin='\n'.join(many).encode(), args=['--format', 'lines', '--threads', '3'])
    c.tap.ok(c.documents() == [m.encode() for m in many], 'many lines')


def test_utf8(c):
    r = random.Random(4)
    pieces = [b'\xff', b'\xc3', b'\xe4\xb8', b'\xed\xa0\x80', b'\xf0\x9f\x99', b'\xf4\x90\x80\x80', b'\xc0\xaf', b'\x80', b'\xe0\x80', b'\xf8\x88']
    good = prose(9, 200000).encode().split(b' ')
    mixed = lambda n: b''.join(r.choice(good) + r.choice([b' ', b'']) + (r.choice(pieces) if r.random() < 0.3 else b'') for _ in range(n))
    for k in range(3):
        data = mixed(120000) + pieces[k]
        c.go(c.write('bad.txt', data), args=['--invalid-utf8', 'replace', '--threads', '2'])
        want = data.decode('utf-8', 'replace')
        c.tap.ok(c.documents() == [want.encode()], f'replaced as Python does it, text {k}')
    rows = [mixed(20).replace(b'\n', b' ').replace(b'\r', b' ').replace(b'\t', b' ') for _ in range(2000)]
    rows = [x.replace(b'"', b' ').replace(b'\\', b' ') for x in rows]
    r1 = c.go(c.write('bad.jsonl', b''.join(b'{"text":"' + x + b'"}\n' for x in rows)), args=['--invalid-utf8', 'replace'])
    want = [x.decode('utf-8', 'replace') for x in rows]
    c.tap.ok(c.documents() == [x.encode() for x in want], 'in JSON lines')
    count = sum(w.count('\ufffd') for w in want)
    c.tap.ok(f'U+FFFD put for what was not UTF-8: {count:,}\n' in r1.stdout, 'counted')
    c.go(c.path('bad.jsonl'), c.lines('good.jsonl', want), args=['--invalid-utf8', 'replace', '--drop-duplicates'])
    c.tap.ok(c.documents() == [x.encode() for x in dict.fromkeys(want)], 'a duplicate is what is one after it')
    long = prose(11, 3 * BATCH).encode()
    at = 2 * BATCH + 77777
    data = long[:at] + b' \xff ' + long[at:]
    at = data.index(b'\xff') + 1
    c.refused('refused with its place, far behind', 3, [f'bad.txt: not UTF-8 at byte {at} (0xff)', '--invalid-utf8 replace'], c.write('bad.txt', data))
    lines = [b'{"text":"%d %s"}' % (i, b'x' * 900) for i in range(3000)]
    lines[2345] = b'{"text":"\xff"}'
    c.refused('and its line', 3, ['bad.jsonl:2346: not UTF-8 at byte 10 of the line'], c.write('bad.jsonl', b'\n'.join(lines)), args=['--threads', '2'])
    lines[1234] = b'oops'
    for n in [0, 3]:
        c.refused(f'the first bad line is told, {n} ranks', 3, ['bad.jsonl:1235: not JSON'], c.write('bad.jsonl', b'\n'.join(lines)), n=n)
    c.refused('a bad tokenizer, 2 ranks', 3, ['not a tokenizer.json'], c.path('bad.txt'), n=2, tokenizer=c.write('no.json', 'no'))
    c.refused('an absent input, 2 ranks', 3, ['nowhere'], c.path('nowhere'), n=2)


def main():
    c = Case()
    tests = [test_layouts, test_parts, test_packed, test_folders, test_stdin, test_utf8]
    for t in tests:
        t(c)
    c.tap.done()


if __name__ == '__main__':
    main()
