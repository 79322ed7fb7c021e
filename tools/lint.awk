# usage: LC_ALL=C awk -f tools/lint.awk src/LAYERS FILE... ; one line per complaint, exit 1 if any.
# The rules that a compiler cannot check; comments and strings are blanked before the code is judged.

BEGIN {
    # token, where it may stand (both: patterns of the whole text), why
    fence("^P?MPIX?_", "^src/(parallel/|main\\.c$)", "MPI is called in src/parallel/ and src/main.c")
    fence("^(malloc|calloc|realloc|free|strdup|strndup|asprintf|aligned_alloc|posix_memalign)$", \
        "^src/(base/arena\\.c$|text/|hf/)", "memory comes from base/arena.h")
    fence("^H5[A-Z]+([a-z_]|$)", "^src/store/", "HDF5 is called in src/store/")
    fence("^(exit|abort|quick_exit|_exit|_Exit)$", \
        "^src/(main|parallel/(agree|comm_mpi)|base/err)\\.c$", \
        "the program ends in main, agree and die")
    fence("^(cuda|cublas|cublasLt|cudnn|nccl)[A-Z]|^(CUBLAS|CUDNN|NCCL)_", "^cuda/", \
        "CUDA is called in cuda/")
    fence("^HAVE_CUDA($)", "^src/(compute/ops|parallel/comm_device)\\.c$", \
        "the tables are chosen in src/compute/ops.c and src/parallel/comm_device.c, nowhere else")
    fence("^HAVE_(NCCL|CUDNN)($)", "^cuda/|^src/parallel/comm_device\\.c$", \
        "what a toolkit has concerns cuda/ only")
    fence("^(__shared__|__constant__|__managed__|asm|__asm__|nvcuda|cooperative_groups)($)", \
        "^src/|^cuda/dialect\\.h$", "kernels speak the dialect of cuda/dialect.h")
    fence("^f?printf$", "^(src|tools)/|^cuda/[a-z0-9_]*\\.[ch]$", "kernels do not print")
    fence("^(assert|setlocale|strtok)$", "^$", "never")
    fence("^(fopen|freopen|open|openat|creat|pread|pwrite|write|fsync|fdatasync|ftruncate|rename|" \
        "unlink|remove|mkdir|rmdir|opendir|mmap)$", \
        "^src/(base/(file|err|arena)|parallel/agree)\\.c$", "files are reached through base/file.h")
}

function fence(token, where, why)
{
    nfences++
    fence_token[nfences] = token
    fence_where[nfences] = where
    fence_why[nfences] = why
}

function complain(text)
{
    printf "%s:%d: %s\n", FILENAME, FNR, text
    bad = 1
}

# Characters, not bytes.
function width(s)
{
    gsub(/[\200-\277]/, "", s)
    return length(s)
}

# The line without comments and without the insides of strings; in_comment goes on over lines.
function code_of(s,    out, c, two, i, n)
{
    out = ""
    n = length(s)
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        two = substr(s, i, 2)
        if (in_comment) {
            if (two == "*/") { in_comment = 0; i++ }
        } else if (two == "/*") {
            in_comment = 1; i++; out = out " "
        } else if (two == "//") {
            break
        } else if (c == "\"" || c == "'") {
            out = out c
            for (i++; i <= n && substr(s, i, 1) != c; i++)
                if (substr(s, i, 1) == "\\") i++
            out = out c
        } else {
            out = out c
        }
    }
    return out
}

# Once a file.
function report_wide()
{
    if (wide) {
        printf "%s:%d: more than 100 columns (%d lines)\n", file, wide_line, wide
        bad = 1
    }
    wide = 0
}

function folder_of(path,    part)
{
    split(path, part, "/")
    return part[2]
}

# Includes by quotes, of files that live in src/.
function check_include(name,    mine, theirs)
{
    theirs = name
    sub(/\/.*/, "", theirs)
    if (FILENAME ~ /^(src\/[^\/]*|cuda)\// && name !~ /\//) {
        complain("#include \"" name "\": name its folder")
        return
    }
    if (FILENAME ~ /^cuda\//) {
        if (name !~ /^((base|cuda)\/|(compute\/(ops|operand)|parallel\/comm)\.h$)/)
            complain("cuda/ includes base/, compute/ops.h, operand.h and parallel/comm.h, not " name)
        return
    }
    if (FILENAME !~ /^src\/[^\/]*\//)
        return
    mine = folder_of(FILENAME)
    if (!(mine in level))
        complain("folder " mine " is not in src/LAYERS")
    else if (!(theirs in level))
        complain("#include \"" name "\": folder " theirs " is not in src/LAYERS")
    else if (mine != theirs && level[mine] <= level[theirs])
        complain(mine "/ (level " level[mine] ") may not include " name " (level " level[theirs] ")")
}

function check_fences(code,    rest, token, before, k, at)
{
    rest = code
    before = ""
    while (match(rest, /[A-Za-z_][A-Za-z_0-9]*/)) {
        token = substr(rest, RSTART, RLENGTH)
        at = RSTART
        before = before substr(rest, 1, at - 1)
        rest = substr(rest, RSTART + RLENGTH)
        if (before !~ /(\.|->)[ ]*$/)
            for (k = 1; k <= nfences; k++)
                if (token ~ fence_token[k] && FILENAME !~ fence_where[k] && is_use(k, rest))
                    complain(token ": " fence_why[k])
        before = before token
    }
}

# Words that are also good English count only as calls.
function is_use(k, rest)
{
    return fence_token[k] !~ /\$$/ || rest ~ /^[ ]*\(/
}

# Functions begin with { and end with } in the first column.
function check_function_size(line)
{
    if (line ~ /^\{/)
        begin = FNR
    else if (line ~ /^\}/ && begin) {
        if (FNR - begin + 1 > 60)
            complain("the function of line " begin " has " FNR - begin + 1 " lines, at most 60")
        begin = 0
    }
}

# Prototypes of a header, at depth 0, end in LOCAL or COLL(...).
function check_prototypes(code,    c, i)
{
    if (code ~ /^[ ]*#/ || continued) {
        continued = code ~ /\\$/
        return
    }
    for (i = 1; i <= length(code); i++) {
        c = substr(code, i, 1)
        if (c == "{")
            depth++
        if (depth == 0)
            statement = statement c
        if (c == "}") {
            depth--
            if (depth == 0)
                statement = statement ~ /^[ ]*(static|extern "C")/ ? "" : statement "{}"
        }
        if (c == ";" && depth == 0) {
            if (statement ~ /\(/ && statement !~ /(LOCAL|COLL)/ && \
                statement !~ /(typedef|\(\*|static|__attribute__\(\(aligned|_Static_assert)/)
                complain("a prototype ends in COLL(comm) or LOCAL")
            statement = ""
        }
    }
    statement = statement " "
}

FILENAME ~ /LAYERS$/ {
    if ($0 !~ /^#/ && NF == 2)
        level[$1] = $2
    next
}

FNR == 1 {
    report_wide()
    file = FILENAME
    in_comment = begin = depth = continued = 0
    statement = ""
    limit = FILENAME ~ /\.h$/ ? 150 : 500
    ours = FILENAME ~ /^(src|cuda|tools)\//
}

{
    if (width($0) > 100 && wide++ == 0)
        wide_line = FNR
    if ($0 ~ /\t/)
        complain("a tab")
    if ($0 ~ /[ \r]$/)
        complain("blanks at the end")
    if (FNR == limit + 1)
        complain("more than " limit " lines")
    if ($0 ~ /(^|[^A-Za-z_])(TODO|FIXME)([^A-Za-z_]|$)/)
        complain("an unfinished place")
    if (!in_comment && $0 ~ /^[ ]*#[ ]*include[ ]*"/) {
        name = $0
        sub(/^[^"]*"/, "", name)
        sub(/".*/, "", name)
        check_include(name)
    }
    if (!in_comment && ours && $0 ~ /^[ ]*#[ ]*include[ ]*<(mpi|hdf5)\.h>/ && \
        FILENAME !~ /^src\/(parallel|store)\// && FILENAME != "src/main.c")
        complain("mpi.h and hdf5.h are for src/parallel/ and src/store/")
    if (!in_comment && ours && FILENAME !~ /^cuda\// && \
        $0 ~ /^[ ]*#[ ]*include[ ]*<(cuda|cublas|cudnn|nccl)[A-Za-z0-9_]*\.h>/)
        complain("headers of the CUDA toolkit are for cuda/")
    code = code_of($0)
    if (code ~ /<<</ && FILENAME ~ /^cuda\// && FILENAME != "cuda/dialect.h")
        complain("kernels are launched by LAUNCH of cuda/dialect.h")
    check_function_size(code)
    if (ours)
        check_fences(code)
    if (FILENAME ~ /^src\/.*\.h$/)
        check_prototypes(code)
}

END {
    report_wide()
    exit bad
}
