"""tools/rows.py: what comes out of a pipe into `pretrain-data tokenize` is every row, in order, of each kind of file."""

import os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
from tokenize_case import *

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = os.path.join(sys.argv[1], 'tools', 'rows.py')


def rows(*args, env=None):
    return subprocess.run([sys.executable, ROWS, *map(str, args)], capture_output=True, timeout=100, env=env)


def stream(path, table, kind=pa.ipc.new_stream):
    with pa.OSFile(path, 'wb') as f, kind(f, table.schema) as w:
        w.write_table(table, max_chunksize=100)


def saved(c, name, tables):
    """As `save_to_disk` of the library datasets writes it."""
    os.makedirs(c.path(name))
    names = [f'data-{i:05d}-of-{len(tables):05d}.arrow' for i in range(len(tables))]
    for n, t in zip(names, tables):
        stream(c.path(name, n), t)
    c.write(name + '/state.json', json.dumps({'_data_files': [{'filename': n} for n in names], '_split': None}))
    c.write(name + '/dataset_info.json', '{}')
    return c.path(name)


def main():
    c = Case('rows')
    texts = [prose(i, i % 7 * 900) + 'é\0"\\\u2028' for i in range(900)]
    table = pa.table({'id': range(len(texts)), 'text': texts, 'body': [t[::-1] for t in texts]})
    half = len(texts) // 2
    os.makedirs(c.path('pq', 'deep'))
    pq.write_table(table, c.path('a.parquet'), row_group_size=200, compression='gzip')
    pq.write_table(table.slice(half), c.path('pq', 'deep', 'b.parquet'))
    pq.write_table(table.slice(0, half), c.path('pq', 'deep', 'a.parquet'))
    stream(c.path('stream.arrow'), table)
    stream(c.path('file.arrow'), table, pa.ipc.new_file)
    whole = saved(c, 'saved', [table.slice(0, half), table.slice(half)])
    os.makedirs(c.path('dict'))
    c.write('dict/dataset_dict.json', '{"splits": ["train", "test"]}')
    saved(c, 'dict/train', [table.slice(0, half)]), saved(c, 'dict/test', [table.slice(half)])
    for name in ['a.parquet', 'pq', 'stream.arrow', 'file.arrow', 'saved', 'dict']:
        r = rows(c.path(name))
        c.go('-', stdin=r.stdout, args=['--format', 'jsonl'])
        c.tap.ok(r.returncode == 0 and c.documents() == [t.encode() for t in texts], f'{name}: every row')
    c.go('-', stdin=rows(c.path('dict'), '--split', 'test').stdout, args=['--format', 'jsonl'])
    c.tap.ok(c.documents() == [t.encode() for t in texts[half:]], 'one split')
    c.go('-', stdin=rows(whole, '--field', 'body').stdout, args=['--format', 'jsonl'])
    c.tap.ok(c.documents() == [t[::-1].encode() for t in texts], 'another column')
    pq.write_table(pa.table({'text': pa.array(['a', None, 'b', ''], pa.large_string())}), c.path('null.parquet'))
    r = rows(c.path('null.parquet'))
    c.tap.ok(r.stdout == b'{"text": "a"}\n{"text": "b"}\n{"text": ""}\n' and b'left out: 1\n' in r.stderr, 'rows without a text are counted')
    c.write('bad.parquet', open(c.path('a.parquet'), 'rb').read()[:-100])
    os.makedirs(c.path('none'))
    c.write('hide/pyarrow.py', 'raise ImportError("hidden")')
    refusals = [
        ('an absent column', 2, ['no column "txt"', 'id, text, body'], (whole, '--field', 'txt'), None),
        ('a column of numbers', 2, ['"id" is int64, not a text'], (c.path('a.parquet'), '--field', 'id'), None),
        ('an absent path', 3, ['nowhere: there is no such'], (c.path('nowhere'),), None),
        ('an absent split', 2, ['has train, test'], (c.path('dict'), '--split', 'dev'), None),
        ('an empty folder', 3, ['no parquet and no Arrow files'], (c.path('none'),), None),
        ('a cut file', 3, ['bad.parquet: cannot be read'], (c.path('bad.parquet'),), None),
        ('a text', 3, ['bad.parquet.txt: cannot be read'], (c.write('bad.parquet.txt', 'hello world'),), None),
        ('without pyarrow', 2, ['pip install pyarrow'], (whole,), {**os.environ, 'PYTHONPATH': c.path('hide')}),
    ]
    for name, code, parts, args, env in refusals:
        r = rows(*args, env=env)
        said = r.stderr.decode()
        good = r.returncode == code and all(p in said for p in parts) and len(said.strip().splitlines()) == 1 and not r.stdout
        if not good:
            print('#', r.returncode, said)
        c.tap.ok(good, name)
    c.tap.done()


if __name__ == '__main__':
    main()
