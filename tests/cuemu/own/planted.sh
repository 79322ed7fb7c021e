#!/bin/sh
# Every planted bug is found by the variants that should find it. A line: the case, what is seen
# (plain: as the program says it; asan: of asan, too), by which variants, with which streams.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/cuemu/own/lib.sh"
tap_need_variants
cat >"$work/table" <<'END'
first_barrier|wrong result|plain asan|eager
first_barrier|data race|tsan|eager
second_barrier|wrong result|plain asan|eager
second_barrier|data race|tsan|eager
barrier_after_load|wrong result|plain asan|eager
barrier_after_load|data race|tsan|eager
barrier_before_load|wrong result|plain asan|eager
barrier_before_load|data race|tsan|eager
warp_barrier|data race|tsan|eager
diverged_barrier|different barriers; kernel diverged, block (0,0,0), thread (.*), at .*barriers.cu:[0-9]|plain asan tsan|eager
barrier_in_branch|deadlock|plain asan tsan|eager
copy_wait|wrong result|plain asan tsan|eager
copy_refill|wrong result|plain asan|eager
copy_refill|data race|tsan|eager
copy_never_waited|never waited for; kernel copy_one|plain asan tsan|eager
copy_misaligned|cp.async is not 16-byte aligned|plain asan tsan|eager
copy_outside|cp.async is not inside shared memory|plain asan tsan|eager
copy_source|source of cp.async is out of bounds|asan|eager
matrix_misaligned|ldmatrix is not 16-byte aligned|plain asan tsan|eager
matrix_outside|ldmatrix is not inside shared memory|plain asan tsan|eager
row_overrun|heap-buffer-overflow|asan|eager
shared_overrun|out of bounds|asan|eager
shared_unwritten|wrong result|plain asan tsan|eager
dynamic_too_small|heap-buffer-overflow|asan|eager
misaligned_vector|misaligned address|asan|eager
blocks_without_atomics|data race|tsan|eager
last_block_without_atomics|data race|tsan|eager
device_unwritten|wrong result|plain asan tsan|eager
device_freed|heap-use-after-free|asan|eager
host_touches_device|host code touches device memory|plain|eager
wild_address|invalid address.*; kernel follow, block (0,0,0), thread (0,0,0)|plain|eager
wild_address|null pointer|asan|eager
wild_address|SEGV|tsan|eager
stack_overflow|stack overflow of a thread; kernel recurse|plain|eager
absent_lane|a lane that the block does not have|plain asan tsan|eager
lane_outside_mask|a lane outside its own mask|plain asan tsan|eager
exited_lane|a lane that has exited|plain asan tsan|eager
different_operations|different warp operations|plain asan tsan|eager
shuffle_width|the width of a shuffle|plain asan tsan|eager
half_a_warp_multiplies|a lane that has exited|plain asan tsan|eager
too_many_threads|wrong result|plain asan tsan|eager
empty_grid|wrong result|plain|eager
grid_too_high|wrong result|plain|eager
shared_not_opted_in|wrong result|plain|eager
shared_beyond_device|wrong result|plain|eager
fixed_shared_too_large|48 KB of shared arrays|plain|eager
shared_sum_too_large|227 KB of shared memory|plain|eager
copy_past_block|wrong result|plain|eager
copy_direction|wrong result|plain|eager
stream_wait|wrong result|plain asan tsan|lazy
stream_wait|data race|tsan|eager
refilled_too_early|wrong result|plain asan tsan|ahead
refilled_too_early|data race|tsan|eager
event_recorded_too_early|wrong result|plain asan tsan|lazy
event_recorded_too_early|data race|tsan|eager
pinned_reused|wrong result|plain asan tsan|lazy
pinned_reused|data race|tsan|eager
download_read_early|wrong result|plain asan tsan|lazy
download_read_early|data race|tsan|eager
non_blocking_stream|wrong result|plain asan tsan|lazy
END
while IFS='|' read -r name what variants streams; do
    for v in $variants; do
        for built in $CUEMU_VARIANTS; do
            case $v/$built in
            "$v/$v" | asan/sanitized) echo "$name|$what|$built|$streams" ;;
            esac
        done
    done
done <"$work/table" >"$work/todo"
tap_plan $(wc -l <"$work/todo")

CUEMU_PROTECT=yes
export CUEMU_PROTECT
while IFS='|' read -r name what v streams; do
    CUEMU_STREAMS=$streams run_variant $v "$(variant_path $v ./tests/cuemu/own/planted)" $name \
        >"$work/out" 2>&1 </dev/null
    rc=$?
    if [ $rc -ne 0 ] && grep -q -e "$what" "$work/out"; then
        tap_ok "$v, $streams: $name"
    else
        echo "# exit $rc, expected: $what"
        tap_not_ok "$v, $streams: $name" "$work/out"
    fi
done <"$work/todo"
tap_done
