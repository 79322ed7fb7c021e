"""Rows of a data set as JSON lines {"text": ...} on standard output, a batch at a time:

    python3 rows.py PATH --field text | pretrain-data tokenize ... --format jsonl -

PATH: a parquet file, a folder of them, or a folder that `save_to_disk` of the library datasets wrote. Needs pyarrow."""
import argparse
import json
import os
import sys


def refuse(text, code=3):
    print('rows.py: ' + text, file=sys.stderr)
    sys.exit(code)


try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as why:
    refuse(f'pyarrow is needed ({why}); python3 -m pip install pyarrow', 2)


def load(path):
    with open(path, encoding='utf-8') as f:
        return json.load(f)


def splits(path, wanted):
    """The folders of a data set, each with a state.json; of several splits the one that is wanted."""
    if not os.path.exists(os.path.join(path, 'dataset_dict.json')):
        if wanted:
            refuse(f'--split {wanted}: {path} has no splits', 2)
        return [path]
    names = load(os.path.join(path, 'dataset_dict.json'))['splits']
    if wanted and wanted not in names:
        refuse(f'--split {wanted}: {path} has {", ".join(names)}', 2)
    return [os.path.join(path, n) for n in ([wanted] if wanted else names)]


def files(path, wanted):
    if not os.path.exists(path):
        refuse(f'{path}: there is no such file or folder')
    if not os.path.isdir(path):
        return [path]
    out = []
    for part in splits(path, wanted):
        state = os.path.join(part, 'state.json')
        if os.path.exists(state):
            out += [os.path.join(part, f['filename']) for f in load(state)['_data_files']]
        else:
            for folder, below, names in os.walk(part):
                below[:] = sorted(d for d in below if not d.startswith('.'))
                out += [os.path.join(folder, n) for n in sorted(names) if n.endswith(('.parquet', '.arrow'))]
    return out or refuse(f'{path}: no parquet and no Arrow files in it')


def check(path, schema, field):
    if field not in schema.names:
        refuse(f'{path}: no column "{field}"; choose one with --field: {", ".join(schema.names)}', 2)
    kind = schema.field(field).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == 'string_view'):
        refuse(f'{path}: column "{field}" is {kind}, not a text; choose another with --field', 2)


def arrow(path, field):
    with pa.memory_map(path) as f:
        if f.read(6) == b'ARROW1':
            reader = pa.ipc.open_file(f)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            f.seek(0)
            reader = batches = pa.ipc.open_stream(f)
        check(path, reader.schema, field)
        for b in batches:
            yield b.column(reader.schema.get_field_index(field))


def parquet(path, field):
    with pq.ParquetFile(path) as f:
        check(path, f.schema_arrow, field)
        for b in f.iter_batches(batch_size=1000, columns=[field]):
            yield b.column(0)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('path')
    a.add_argument('--field', default='text', help='the column that holds the text [text]')
    a.add_argument('--split', help='of a data set with several [all, one after the other]')
    a = a.parse_args()
    absent, out = 0, sys.stdout.buffer
    for path in files(a.path, a.split):
        with open(path, 'rb') as f:
            read = parquet if f.read(4) == b'PAR1' else arrow
        try:
            for column in read(path, a.field):
                for part in range(0, len(column), 1000):
                    for t in column.slice(part, 1000).to_pylist():
                        absent += t is None
                        if t is not None:
                            out.write(json.dumps({'text': t}, ensure_ascii=False).encode() + b'\n')
        except (pa.ArrowException, UnicodeError) as why:
            refuse(f'{path}: cannot be read: {why}')
    out.flush()
    if absent:
        print(f'rows.py: rows without a text, left out: {absent:,}', file=sys.stderr)


if __name__ == '__main__':
    try:
        main()
    except BrokenPipeError:  # who reads has said why it stopped
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(3)
    except (OSError, ValueError) as why:
        refuse(str(why))
