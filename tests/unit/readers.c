/* Token files of other programs: every format read as it is, heads and lists that lie. */
#include "tests/token_formats.h"

/* ---- what is read ---- */

static int reads(const char *name, int stated, enum dtype dtype, const char *format, int documents)
{
    struct tokens_stated s = { stated, documents ? -1 : 250 };
    int32_t ids[N];
    int64_t largest = 0;
    struct tokens t;
    int good = holds(tokens_open_as(&t, path_of(name), &s, &err));

    if (!good)
        return 0;
    good = t.count == N && t.dtype == dtype && !strcmp(t.format, format) && t.vocab_size == 0 &&
           t.ndocuments == (documents ? DOCUMENTS : 0) && t.eod == s.eod &&
           holds(tokens_read(&t, 0, N, ids, &err)) && holds(tokens_sample(&t, &err)) &&
           holds(tokens_check(&t, &largest, &err)) && largest == 250;
    for (int64_t i = 0; i < N && good; i++)
        good = ids[i] == (int32_t)token(i);
    for (int d = 0; d <= t.ndocuments && good && documents; d++)
        good = tokens_first(&t, d) == starts[d];
    good = good && (!documents || (tokens_document(&t, 3) == 2 && tokens_document(&t, 998) == 3));
    tokens_close(&t);
    return good;
}

static void test_formats(void)
{
    static const struct {
        int code;
        size_t size;
        enum dtype dtype;
    } megatron[] = { { 1, 1, U8 }, { 4, 4, I32 }, { 5, 8, I64 }, { 8, 2, U16 } };
    static const struct {
        size_t size;
        enum dtype dtype;
    } raw[] = { { 2, U16 }, { 4, U32 }, { 4, I32 }, { 8, I64 } };

    for (int i = 0; i < COUNT_OF(megatron); i++) {
        write_megatron(megatron[i].code, megatron[i].size, i % 2);
        tap_ok(reads("m.bin", -1, megatron[i].dtype, "Megatron", 1), "Megatron, %s",
               dtype_name(megatron[i].dtype));
    }
    write_datatrove(2, NULL);
    tap_ok(reads("d.ds", -1, U16, "datatrove", 1), "datatrove, uint16");
    write_datatrove(4, "some|thing|4\n1000\n1 k\n");
    tap_ok(reads("d.ds", U32, U32, "datatrove", 1),
           "datatrove, uint32, metadata; dtype stated too");
    write_llmc(20240520, 1, 2);
    tap_ok(reads("l.bin", -1, U16, "llm.c", 0), "llm.c, uint16");
    write_llmc(20240801, 7, 4);
    tap_ok(reads("l.bin", -1, U32, "llm.c", 0), "llm.c, uint32");
    for (int i = 0; i < COUNT_OF(raw); i++) {
        write_raw(raw[i].size);
        tap_ok(reads("r.u", (int)raw[i].dtype, raw[i].dtype, "raw", 0), "raw, %s",
               dtype_name(raw[i].dtype));
    }
}

/* ---- the same samples, with and without documents ---- */

static int same_rows(const char *const names[2], int mask, const struct tokens_stated *stated)
{
    enum { S = 64 };
    int32_t rows[2][5][S];
    int good = 1;

    for (int64_t k = 0; k < (N - 1) / S; k++) {
        for (int i = 0; i < 2; i++) {
            const char *path = path_of(names[i]);
            struct batch_rows b = { rows[i][0], rows[i][1], rows[i][2], rows[i][3], rows[i][4] };
            struct corpus c;

            good &= holds(corpus_open(&c, &path, 1, S, i ? stated : NULL, &err)) &&
                    holds(batch_fill(&c, &b, 0, k, mask, 1, &err));
            corpus_close(&c);
        }
        good &= memcmp(rows[0], rows[1], sizeof rows[0]) == 0;
    }
    return good;
}

static void test_samples(void)
{
    struct tokens_stated stated = { U16, 17 };
    struct tokens_writer *w;

    tokens_writer_open(&w, path_of("ours.h5"), 251, 17, NULL, 0, &err);
    for (int64_t i = 0; i < N; i++) {
        uint32_t id = token(i);

        tokens_writer_add(w, &id, 1, &err);
        if (id == 17)
            tokens_writer_document(w);
    }
    holds(tokens_writer_close(w, &err));
    write_raw(2);
    write_megatron(8, 2, 0);
    write_datatrove(2, NULL);
    tap_ok(same_rows((const char *const[]){ "ours.h5", "r.u" }, 1, &stated),
           "documents by the id that ends them: as listed by import");
    tap_ok(same_rows((const char *const[]){ "d.ds", "m.bin" }, 1, NULL),
           "documents, one of them empty, from two formats");
}

/* The run to the very end of a file, whose last label does not count. */
static void test_end(void)
{
    enum { LENGTH = 64, LAST = 40 };
    int32_t r[5][LENGTH];
    struct batch_rows b = { r[0], r[1], r[2], r[3], r[4] };
    struct tokens t;
    int good;

    write_megatron(8, 2, 0);
    good = holds(tokens_open(&t, path_of("m.bin"), &err)) &&
           holds(batch_fill_run(&t, &b, 0, LENGTH, N - LAST, LAST, 1, 1, &err));
    /* the last document is the last token */
    good = good && r[0][LAST - 1] == (int32_t)token(N - 1) && r[1][LAST - 1] == -1 &&
           r[1][LAST - 2] == -1 && r[4][LAST - 1] == 0 && r[4][LAST - 2] == LAST - 2 &&
           r[1][LAST] == -1;
    tap_ok(good, "documents to the end of the file");
    tokens_close(&t);
}

/* ---- nothing is believed ---- */

struct fault {
    const char *what, *name;
    size_t at; /* of the byte that changes */
    int byte;
    const char *said;
};

static void test_faults(void)
{
    static const struct fault faults[] = {
        { "magic", "m.idx", 0, 'X', "not a Megatron index" },
        { "version", "m.idx", 9, 2, "version 2" },
        { "type", "m.idx", 17, 6, "type code 6" },
        { "no sequence", "m.idx", 18, 0, "cannot hold the 0 sequences" },
        { "too many sequences", "m.idx", 25, 0x70, "cannot hold" },
        { "too many documents", "m.idx", 33, 0x70, "cannot hold" },
        { "negative documents", "m.idx", 33, 0xff, "cannot hold" },
        { "a document too few", "m.idx", 26, DOCUMENTS, "behind its lists" },
        { "length of a sequence", "m.idx", 34 + 12, 9, "sequence 4 begins at byte 1998" },
        { "negative length", "m.idx", 34 + 15, 0xff, "sequence" },
        { "length of the last", "m.idx", 34 + 16, 9, "lists 2016: they are not of one run" },
        { "offset of the first", "m.idx", 34 + 20, 9, "sequence 0 begins at byte 9" },
        { "offset beyond all", "m.idx", 34 + 20 + 39, 0x7f, "not of one run" },
        { "documents from 1", "m.idx", 34 + 60, 1, "do not span" },
        { "documents to 4", "m.idx", 34 + 60 + 40, 4, "do not span" },
        { "documents descend", "m.idx", 34 + 60 + 16, 4, "document 3 starts at token 500" },
        { "a document nowhere", "m.idx", 34 + 60 + 16, 77, "document 2 starts at token -1" },
        { "end of the last document", "d.ds.index", 32, 9, "not the" },
        { "ends descend", "d.ds.index", 25, 0, "document 4 starts at token 231" },
        { "an end beyond all", "d.ds.index", 14, 0x7f, "document 2 starts at token" },
        { "negative end", "d.ds.index", 15, 0xff, "document 2 starts at token" },
        { "version", "l.bin", 4, 2, "version 2" },
        { "count", "l.bin", 8, 7, "header says 775 tokens" },
        { "negative count", "l.bin", 11, 0xff, "header says -" },
    };

    for (int i = 0; i < COUNT_OF(faults); i++) {
        const struct fault *f = &faults[i];
        const char *open = f->name[0] == 'm' ? "m.bin" : f->name[0] == 'd' ? "d.ds" : "l.bin";
        unsigned char byte = (unsigned char)f->byte;
        struct tokens t;
        struct file file;

        write_megatron(8, 2, 0);
        write_datatrove(2, NULL);
        write_llmc(20240520, 1, 2);
        file_open(&file, path_of(f->name), FILE_UPDATE, &err);
        file_write_at(&file, &byte, 1, (int64_t)f->at, &err);
        file_close(&file, &err);
        tap_ok(fails(tokens_open(&t, path_of(open), &err), f->said), "%s: %s", f->name, f->what);
    }
}

static void test_disagree(void)
{
    static const struct tokens_stated u32 = { U32, -1 };
    struct tokens t;

    write_megatron(8, 2, 0);
    put_tokens(2);
    out.n -= 2;
    save("m.bin");
    tap_ok(fails(tokens_open(&t, path_of("m.bin"), &err), "it has 1998 bytes of tokens, but"),
           "a .bin that lacks a token");
    write_megatron(8, 2, 0);
    tap_ok(fails(tokens_open_as(&t, path_of("m.bin"), &u32, &err), "data_dtype says uint32"),
           "another type is stated");
    tap_ok(fails(tokens_open(&t, path_of("m.idx"), &err), "name its .bin"), "the index is named");
    write_datatrove(2, "name|4\n1000\n");
    tap_ok(fails(tokens_open(&t, path_of("d.ds"), &err), "a token has 4 bytes"),
           "metadata of another token size");
    write_datatrove(2, "name|2\n999\n");
    tap_ok(fails(tokens_open(&t, path_of("d.ds"), &err), "says 999 tokens"),
           "metadata of another count");
    write_raw(1);
    out.p[0] = 1;
    out.n = 7;
    save("r.u");
    tap_ok(fails(tokens_open_as(&t, path_of("r.u"), &u32, &err), "not a whole number of uint32"),
           "half a token");
    tap_ok(fails(tokens_open(&t, path_of("r.u"), &err), "data_dtype"), "raw without a type");
}

/* Every file cut everywhere, and a byte changed at random: refused, or read without harm. */
static void test_mutations(void)
{
    static const char *const names[] = { "m.idx", "m.bin", "d.ds", "d.ds.index", "l.bin" };
    static const char *const opened[] = { "m.bin", "m.bin", "d.ds", "d.ds", "l.bin" };
    uint64_t rng = 1;
    int refused = 0, read = 0, silent = 0;

    for (int i = 0; i < COUNT_OF(names) * 200; i++) {
        int k = i % COUNT_OF(names);
        char *bytes;
        size_t n, at;
        struct tokens t;
        int64_t largest;

        write_megatron(8, 2, 0);
        write_datatrove(2, NULL);
        write_llmc(20240520, 1, 2);
        file_read_text(path_of(names[k]), 1 << 20, &bytes, &n, &err);
        rng = rng * 6364136223846793005u + 1442695040888963407u;
        at = (size_t)(rng >> 33) % (i % 3 ? min_i64((int64_t)n, 200) : (int64_t)n);
        bytes[at] ^= (char)(1 << (rng >> 60 & 7));
        put_file(path_of(names[k]), bytes, i % 4 ? n : at);
        mem_give(bytes);
        if (tokens_open(&t, path_of(opened[k]), &err) != OK) {
            refused++;
            silent += !strstr(err.text, dir);
        } else {
            read++;
            for (int64_t p = 0; p < t.count && t.ndocuments; p += 97)
                tokens_document_start(&t, p);
            tokens_check(&t, &largest, &err);
            tokens_close(&t);
        }
        err.text[0] = '\0';
    }
    tap_ok(refused > 100 && read > 100 && !silent, "%d damaged files refused by name, %d read",
           refused, read);
}

int main(void)
{
    tap_plan(12 + 2 + 1 + 24 + 7 + 1);
    if (!mkdtemp(dir))
        return 1;
    test_formats();
    test_samples();
    test_end();
    test_faults();
    test_disagree();
    test_mutations();
    file_remove_tree(dir, NULL);
    return tap_done();
}
