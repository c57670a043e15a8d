"""Planted mistakes, each of which has to be named, with its line; and correct programs that look like mistakes."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.tiers import FIRST, at_length, some
from tools.user_files import Asked
from tools.user_files.running import program_of

HERE = Path(__file__).parent / "planted"
BUILD = Path(os.environ["WORKBOOK_BUILD"])
DIES = "dies"  # the program, as on a GPU
HOST = "mistakes_host.cu"
KERNELS = "mistakes_kernels.cu"
LIBRARIES = "mistakes_libraries.cu"

# The case: the words that have to be said. Where the source marks a line with the case's name, they have to name it.
MISTAKES = {
    KERNELS: {
        "missing_barrier": "race on shared memory: no barrier between",
        "barrier_missing_in_loop": "race on shared memory: no barrier between",
        "barrier_missing_at_end_of_loop": "race on shared memory: no barrier between",
        "all_write_one_place": "race on shared memory: no barrier between this write",
        "shared_counter": "race on shared memory: no barrier between",
        "histogram_before_it_is_cleared": "race on shared memory: no barrier between this atomic",
        "total_read_without_a_barrier": "race on shared memory: no barrier between",
        "bins_added_up_without_a_barrier": "race on shared memory: no barrier between",
        "uninitialised_shared": "read of 4 bytes of uninitialised shared memory",
        "uninitialised_accumulator": "of 4 bytes of uninitialised shared memory",
        "dynamic_shared_too_small": "0 bytes past the end of the 256 bytes of dynamic shared memory",
        "dynamic_shared_forgotten": "past the end of the 0 bytes of dynamic shared memory",
        "one_byte_too_many_in_dynamic_shared": "at byte 37, 0 bytes past the end of the 37 bytes of dynamic shared memory",
        "static_shared_too_small": "read at byte 256, 0 bytes past the end of the shared variable place (256 bytes)",
        "before_static_shared": "read 4 bytes before the start of the shared variable place (256 bytes)",
        "block_wider_than_its_tile": "write at byte 256, 0 bytes past the end of the shared variable tile (256 bytes)",
        "more_values_than_bins": "atomic access at byte 32, 0 bytes past the end of the shared variable bins (32 bytes)",
        "vector_half_beyond_static_shared": "read at byte 260, 0 bytes past the end of the shared variable row",
        "warp_synchronous_tail": "two lanes of one warp: up to compute capability 6 they ran in step",
        "warp_synchronous_exchange": "two lanes of one warp: up to compute capability 6 they ran in step",
        "warp_synchronous_in_global_memory": "two lanes of one warp: up to compute capability 6 they ran in step",
        "shuffle_with_wrong_mask": "the lanes of a warp have parted",
        "shuffle_from_an_absent_lane": "reads the value of lane 20, which is not at this shuffle",
        "barriers_in_two_branches": "barrier divergence",
        "barriers_on_one_line": "barrier divergence: the threads of the block wait at different barriers: warp 0 waits in",
        "barrier_in_a_branch": "barrier divergence",
        "loops_of_different_lengths": "barrier divergence",
        "lane_that_has_returned": "reads the value of lane 5, which is not at this shuffle: it has returned",
        "grid_sync_without_cooperation": "grid.sync in a launch that is not cooperative",
        "off_by_one": "invalid write at byte 400, 0 bytes past the end of a 400-byte allocation",
        "beyond_in_a_header": "invalid read at byte 256, 0 bytes past the end of a 256-byte allocation",
        "no_guard": "invalid write at byte 400, 0 bytes past the end of a 400-byte allocation",
        "before_the_start": "invalid read 4 bytes before the start",
        "one_byte_too_many": "invalid write at byte 37, 0 bytes past the end of a 37-byte allocation",
        "wide_store_beyond": "invalid write at byte 40, 0 bytes past the end of a 40-byte allocation",
        "null_pointer": "invalid write of a null pointer",
        "after_it_was_freed": "allocation that was freed",
        "misaligned": "misaligned write: the address of a 8-byte access",
        "bytes_copied_beyond": "invalid read at byte 756, 0 bytes past the end of a 756-byte allocation",
        "atomic_beyond": "invalid atomic access at byte 40, 0 bytes past the end",
        "never_cleared": "read of 4 bytes of global memory that nobody has written",
        "copied_too_little": "read of 4 bytes of global memory that nobody has written",
        "copy_of_nothing": "read of 4 bytes of global memory that nobody has written",
        "counter_of_blocks": "race on global memory: nothing orders this read",
        "sum_that_one_block_clears": "nothing orders this atomic access of 4 bytes and the write of the same memory by block (0, 0, 0)",
        "counter_of_threads": "race on global memory: nothing orders this read",
        "counter_in_pinned_memory": "race on pinned memory: nothing orders this",
        "histogram_without_atomics": "race on global memory: nothing orders this read",
        "in_place_stencil": "race on global memory: nothing orders this",
        "two_blocks_write_one_element": "race on global memory: nothing orders this write",
        "last_block_without_a_fence": "race on global memory: nothing orders this read",
        "last_block_without_a_barrier": "a __syncthreads() before the __threadfence() and the flag, and one behind the wait",
        "flag_without_a_barrier": "a __syncthreads() before the __threadfence() and the flag, and one behind the wait",
        "flag_that_one_thread_has_waited_for": "a __syncthreads() before the __threadfence() and the flag, and one behind the wait",
        "lock_released_without_a_barrier": "race on global memory: nothing orders this write",
        "global_scratch_without_a_barrier": "race on global memory: nothing orders this write",
        "plain_read_of_an_atomic_counter": "race on global memory: nothing orders this",
        "flag_that_is_lowered_again": "race on global memory: nothing orders this read",
        "bytes_that_overlap": "race on global memory: nothing orders this write of 1 byte",
        "counter_in_a_device_variable": "race on global memory: nothing orders this read",
        "counter_in_an_initialised_variable": "race on global memory: nothing orders this read",
        "device_variable_too_small": "atomic access at byte 64, 0 bytes past the end of the device variable bins (64 bytes)",
        "constant_table_too_small": "read at byte 12, 0 bytes past the end of the constant variable weights (12 bytes)",
        "before_a_constant_table": "read 4 bytes before the start of the constant variable weights (12 bytes)",
        "assertion": "assertion failed: n > 5",
        "shift_by_all_bits": "a shift by 32 of a number of 32 bits",
        "division_by_zero": "an integer is divided by 0",
        "too_many_threads": "a block has 1 to 1024 threads",
        "more_threads_than_its_bounds": "threads, and the kernel's __launch_bounds__ allow",
        "block_of_no_threads": "a block has 1 to 1024 threads",
        "read_before_a_block_has_started": "of which this thread does not know that it has started",
        "block_that_leaves_too_early": "a block has to stay until the others have done with its shared memory",
        "barrier_of_the_block_and_not_of_the_cluster": "race on shared memory: no barrier between this",
        "blocks_of_a_cluster_add_to_one_element": "race on global memory: nothing orders this",
        "cluster_that_the_grid_is_no_multiple_of": "the grid (3, 1, 1) is not a multiple of it",
        "beyond_its_own_malloc": "invalid write at byte 20, 0 bytes past the end of the 20 bytes that a kernel has allocated",
        "beyond_its_own_new": "invalid write at byte 24, 0 bytes past the end of the 24 bytes that a kernel has allocated",
        "before_its_own_malloc": "invalid write 4 bytes before the 20 bytes that a kernel has allocated",
        "after_its_own_delete": "invalid read at byte 0 of the 24 bytes that a kernel has allocated, and freed",
        "freed_twice_by_a_kernel": "free or delete in a kernel: it was freed already",
        "malloc_that_failed": "invalid write of a null pointer",
        "read_only_load_of_what_is_written": "__ldg() reads 4 bytes of global memory that this launch has written",
        "constant_written_by_a_kernel": "invalid write of a __constant__ variable, settings: kernels can only read it",
        "undefined_value_in_a_sum": "it stores what follows from an undefined value: the __shfl_down_sync at",
        "address_of_a_device_function": "a call of square, whose address host code has taken",
        "table_of_device_functions": "a call of square, whose address host code has taken",
        "function_that_a_member_begins_with": "a call of square, whose address host code has taken",
        "function_in_a_constructor_s_list": "a call of square, whose address host code has taken",
        "function_as_a_default_argument": "a call of square, whose address host code has taken",
        "function_as_a_template_argument_of_the_host": "a call of square, whose address host code has taken",
        "function_of_both_sides_as_an_argument": "a call of cube, whose address host code has taken",
        "null_pointer_to_a_function": "a call of a function by a null pointer",
        "object_of_the_host": "a virtual call for an object that host code has made",
        "objects_of_the_host_in_an_argument": "a virtual call for an object that host code has made",
        "managed_objects_of_the_host": "a virtual call for an object that host code has made",
        "table_of_named_functions": "a call of square, whose address host code has taken",
        "function_of_both_sides_in_a_structure": "a call of cube, whose address host code has taken",
        "function_of_the_host": "a call of one_more, which is the host's",
        "operator_of_the_host": "a kernel calls operator-(), which is the host's: it needs __host__ __device__",
        "member_of_the_host": "a kernel calls sum(), which is the host's: it needs __host__ __device__",
        "constructor_of_the_host": "a kernel calls Span::Span(), which is the host's: it needs __host__ __device__",
        "static_member_of_the_host": "a call of back, which is the host's",
        "lambda_of_the_host": "a call of a lambda function, which is the host's",
        "steps_without_a_barrier": "race on shared memory: no barrier between this",
        "steps_in_one_launch": "race on global memory: nothing orders this",
        "number_for_the_others": "race on global memory: nothing orders this read",
        "pinned_memory_that_was_freed": "invalid read of pinned memory that was freed",
        "text_of_the_host": "invalid read of memory of the host (its heap)",
        "number_without_room": "-100 becomes a number of type unsigned char, in which it has no room: C++ leaves open what that gives; a GPU gives 0",
        "misaligned_atomic": "misaligned atomic access: the address of a 8-byte access",
        "variable_of_another_thread": "invalid read of a variable of another thread's own",
        "atomic_on_its_own_variable": "invalid atomic access of a variable of the thread's own",
        "read_only_load_of_shared_memory": "invalid read of shared memory: __ldg() reads global memory",
        "shared_object_that_nobody_made": "of 4 bytes of uninitialised shared memory",
        "shuffle_of_24_lanes": "__shfl_down_sync: its width has to be a power of two, at most 32, and is 24",
        "function_of_the_host_behind_one_of_both": "a kernel calls ten_times(), which is the host's: it needs __host__ __device__",
        "variable_given_to_a_child": "it gives kernel child, which it launches, the address of a variable of its own",
        "counter_of_one_block_for_all": "race on global memory: nothing orders this atomic access of 4 bytes and the atomic access",
        "more_children_than_may_wait": "kernels have launched more than 8 that have not begun",
    },
    HOST: {
        "host_pointer": "invalid read of memory of the host (its heap)",
        "host_vector": "invalid read of memory of the host (its heap)",
        "host_global": "invalid read of memory of the host (its variable of_the_program)",
        "host_static": "invalid write of memory of the host (its variable result)",
        "host_variable": "invalid read of memory of the host (its stack)",
        "host_reads_a_device_variable": "the device variable total, which kernels use: on a GPU the host has another one",
        "host_writes_a_constant": "the constant variable factors, which kernels use: on a GPU the host has another one",
        "copy_to_a_bare_name": "is what the bare name of a device variable is on the host, not the variable's memory",
        "constant_table_by_its_name": "host code gives a kernel, at .*, the address of factors by its name",
        "device_variable_by_its_address": "host code gives a kernel, at .*, the address of total by its name",
        "memory_for_a_device_variable": "host code writes, at .*, the device variable scratch, which kernels use",
        "host_reads_device_memory": "host code reads",
        "host_writes_device_memory": "host code writes",
        "memcpy_of_the_host": "host code reads",
        "freed_by_the_host": "host code writes",
        "managed_without_waiting": "managed memory without having waited for the kernel",
        "managed_written_too_early": "managed memory without having waited for the kernel",
        "managed_of_the_other_stream": "managed memory without having waited for the kernel",
        "pinned_read_too_early": "without having waited for its stream",
        "pinned_written_too_early": "without having waited for its stream",
        "managed_and_cleared": "managed memory without having waited for the cudaMemsetAsync at",
        "managed_and_copied": "managed memory without having waited for the cudaMemcpyAsync at",
        "other_stream_awaited": "without having waited for its stream",
        "event_before_the_copy": "without having waited for its stream",
        "streams_that_race": "are not ordered: they are in different streams",
        "copy_beside_a_kernel": "are not ordered: they are in different streams",
        "updated_beside_a_copy": "kernel add, .*: this write .* and the read of the same memory by the cudaMemcpyAsync at .* are not ordered",
        "updated_beside_a_kernel": "kernel twice, .*: this write .* and the read of the same memory by kernel copy_reversed at .* are not ordered",
        "managed_that_another_stream_reads": "managed memory without having waited for the kernel",
        "mapped_read_too_early": "what kernel fill writes at .* without having waited for it",
        "mapped_written_too_early": "what kernel copy reads at .* without having waited for it",
        "registered_read_too_early": "what kernel fill writes at .* without having waited for it",
        "registered_and_compared_too_early": "what the cudaMemcpyAsync at .* writes, without having waited for its stream",
        "allocated_in_another_stream": "and the cudaMallocAsync at .* are not ordered: they are in different streams",
        "freed_in_another_stream": "the cudaFreeAsync at .* and the write of the same memory by kernel fill at .* are not ordered",
        "freed_while_another_stream_reads": "the cudaFreeAsync at .* and the read of the same memory by kernel copy at .* are not ordered",
        "cleared_in_another_stream": "by the cudaMemsetAsync at .* are not ordered: they are in different streams",
        "bins_cleared_in_one_of_two_streams": "this atomic access .* and the write of the same memory by the cudaMemsetAsync at .* are not ordered",
        "copied_beside_a_non_blocking_stream": "the cudaMemcpy at .*: its read and the write of the same memory by kernel fill at .* are not ordered",
        "cleared_beside_a_non_blocking_stream": "the cudaMemset at .*: its write and the read of the same memory by kernel copy at .* are not ordered",
        "cleared_too_late_for_a_non_blocking_stream": "by the cudaMemset at .* are not ordered: they are in different streams",
        "copied_on_the_device_beside_a_stream": "by the cudaMemcpy at .* are not ordered: they are in different streams",
        "rows_copied_in_another_stream": "the cudaMemcpy2DAsync at .*: its read and the write of the same memory by kernel fill at .* are not ordered",
        "rows_read_too_early": "what the cudaMemcpy2DAsync at .* writes, without having waited for its stream",
        "pinned_read_too_early_in_a_header": "without having waited for its stream",
        "variable_read_in_another_stream": "the cudaMemcpyFromSymbolAsync at .*: its read and the write of the same memory by kernel fill_numbers",
        "variable_written_in_another_stream": "the cudaMemcpyToSymbolAsync at .*: its write and the write of the same memory by kernel fill_numbers",
        "pinned_between_two_streams": "the cudaMemcpyAsync at .*: its read and the write of the same memory by the cudaMemcpyAsync at .* are not ordered",
        "pinned_taken_for_the_next_part_too_early": "the cudaMemcpy at .*: its write and the read of the same memory by the cudaMemcpyAsync at .* are not ordered",
        "registered_between_two_streams": "the cudaMemcpyAsync at .*: its read and the write of the same memory by the cudaMemcpyAsync at .* are not ordered",
        "mapped_beside_a_copy": "the cudaMemcpyAsync at .*: its read and the write of the same memory by kernel fill at .* are not ordered",
        "mapped_beside_a_kernel": "kernel doubled, .*: this read of 4 bytes of pinned memory and the write of the same memory by kernel fill at .* are not ordered",
        "constant_rewritten_beside_a_kernel": "the cudaMemcpyToSymbol at .*: its write and the read of the same memory by kernel weighted at .* are not ordered",
        "constant_that_is_still_on_its_way": "kernel weighted_sum, .*: this read of 4 bytes of constant memory and the write of the same memory by the cudaMemcpyToSymbolAsync at .* are not ordered",
        "update_that_waits_for_all_but_one": "the cudaMemsetAsync at .*: its write and the read of the same memory by kernel copy at .* are not ordered",
        "graphs_that_race": "the cudaMemsetAsync at .*: its write and the write of the same memory by kernel fill at .* are not ordered",
        "updated_beside_a_copy_of_its_graph": "kernel add, .*: this write .* and the read of the same memory by the cudaMemcpyAsync at .* are not ordered",
        "graph_s_copy_read_too_early": "what the cudaMemcpyAsync at .* writes, without having waited for its stream",
        "nodes_without_an_edge": "the cudaGraphAddMemcpyNode1D at .*: its read and the write of the same memory by the cudaGraphAddMemsetNode",
        "function_in_another_stream": "what the cudaMemcpyAsync at .* writes, without having waited for its stream",
        "copy_of_a_kernel_s_memory": "failed, and the program did not look: .* is memory that a kernel has allocated itself",
        "clearing_of_a_kernel_s_memory": "failed, and the program did not look: .* is memory that a kernel has allocated itself",
        "free_of_a_kernel_s_memory": "failed, and the program did not look: .* is memory that a kernel has allocated itself",
        "kernel_s_memory_freed_in_a_loop": "failed, and the program did not look: .* is memory that a kernel has allocated itself",
        "freed_twice_in_a_header": "failed, and the program did not look: .* that was freed already",
        "time_of_an_event_to_come": "failed, and the program did not look: .* the host has not waited for the event",
        "time_of_an_event_after_the_awaited_one": "failed, and the program did not look: .* the host has not waited for the event",
        "event_that_was_destroyed": "failed, and the program did not look: .* the event has been destroyed",
        "stream_that_was_destroyed": "kernel fill: its launch: the stream has been destroyed",
        "memory_from_before_a_reset": "of a 256-byte allocation that cudaDeviceReset() has freed",
        "memory_freed_after_a_reset": "failed, and the program did not look: .* that cudaDeviceReset.. has freed",
        "stream_from_before_a_reset": "kernel fill: its launch: the stream has been destroyed",
        "allocation_in_a_capture": "failed, and the program did not look: .* not allowed while a stream is captured",
        "wait_in_a_capture": "failed, and the program did not look: .* not allowed while a stream is captured",
        "query_in_a_capture": "failed, and the program did not look: cudaStreamQuery: not allowed while a stream is captured",
        "copy_in_a_capture": "failed, and the program did not look: .* not allowed while a stream is captured",
        "default_stream_beside_a_capture": "kernel fill: its launch: not allowed while a stream is captured",
        "capture_that_is_not_joined": "failed, and the program did not look: .* this stream does not wait for what another",
        "freed_twice": "failed, and the program did not look: .* that was freed already",
        "free_in_the_middle": "failed, and the program did not look: .* not its start",
        "free_of_host_memory": "failed, and the program did not look: .* not the start of an allocation",
        "wrong_direction": "failed, and the program did not look: .* which the kind of this copy says it is not",
        "arguments_the_wrong_way_round": "failed, and the program did not look: .* is not device memory",
        "copy_too_long": "failed, and the program did not look: .* is the start of 512 bytes, which end 256 bytes past the end of a 256-byte allocation",
        "copy_from_beyond_pinned_memory": "failed, and the program did not look: .* of 256 bytes: the source .* is in pinned memory, of which 252 bytes are left there",
        "copy_to_beyond_pinned_memory": "failed, and the program did not look: .* the destination .* is in pinned memory, of which 256 bytes are left there",
        "copy_without_parameters": "failed, and the program did not look: cudaMemcpy3D: a null pointer",
        "never_freed": "256 bytes of device memory were never freed: allocated at",
        "printed_and_not_awaited": "kernel tell prints, and the program ends without having waited for it",
        "result_half_written": "copies 512 bytes to the host; nobody has written bytes 256 to 511 of them",
        "rows_without_their_pitch": "copies 8 rows of 400 bytes to the host; nobody has written bytes 128 to 399 of them in row 6",
        "last_element_not_written": "copies 512 bytes to the host; nobody has written bytes 508 to 511 of them",
        "function_of_the_device": "host code calls, at .*, opposite, which is the device's",
        "object_of_a_kernel": "a virtual call for an object that a kernel has made",
        "copied_object_of_a_kernel": "a virtual call for an object that a kernel has made",
        "type_of_an_object_of_a_kernel": "for the type of an object that a kernel has made (dynamic_cast)",
        "heap_resized_too_late": "failed, and the program did not look: cudaDeviceSetLimit: a kernel has asked for memory already",
        "shifted_within_one_array": "the cudaMemcpy at .*: its source and its destination overlap",
        "rows_shifted_within_one_array": "the cudaMemcpy2D at .*: its source and its destination overlap",
        "pinned_after_it_was_freed": "pinned memory that was freed (cudaFreeHost), and ends here",
        "managed_written_while_it_is_read": "managed memory without having waited for the kernel",
        "call_by_a_function_of_a_stream": "failed, and the program did not look: a call of CUDA's by a function that a stream calls",
        "too_much_static_shared": "53248 bytes of static shared memory: nvcc takes at most 49152",
        "dynamic_shared_without_opting_in": "65536 bytes of dynamic shared memory: more than 49152 need cudaFuncSetAttribute",
    },
}
MISTAKES[LIBRARIES] = {
    "cub_storage_without_a_barrier": "race on shared memory: no barrier between this write",
    "cub_too_many_items": "invalid read at byte 400, 0 bytes past the end of a 400-byte allocation",
    "cub_result_on_the_host": "invalid write of memory of the host (its stack)",
    "barrier_without_init": "no mbarrier was made at this address",
    "barrier_expects_too_many": "128 of 129 arrivals have come",
    "barrier_not_waited_for": "race on shared memory: no barrier between",
    "barrier_tile_filled_too_early": "race on shared memory: no barrier between this write of 16 bytes",
    "pipeline_not_waited_for": "of shared memory that a cp.async of",
    "pipeline_never_released": "deadlock: every thread of the block waits",
    "atomic_type_of_one_block_for_all": "race on global memory: nothing orders this atomic access of 4 bytes and the atomic access",
    "flag_of_one_block_for_another": "race on global memory: nothing orders this atomic access of 4 bytes and the atomic access",
    "semaphore_never_released": "deadlock: every thread of the block waits",
    "matrix_that_nobody_wrote": "it reads 64 bytes of global memory of which nobody has written one",
    "number_on_the_host": "the address of a number is the host's: with CUBLAS_POINTER_MODE_DEVICE",
    "result_on_the_device": "the address of a number is the device's: with CUBLAS_POINTER_MODE_HOST",
    "pointers_on_the_host": "an array of pointers is in the host's memory",
    "product_in_place": "the cublasSgemm at .*: its result overlaps A",
    "product_without_a_handle": "cublasSscal: it has no handle",
    "managed_and_multiplied": "managed memory without having waited for the cublasSscal at",
    "managed_and_still_read": "managed memory without having waited for the cublasSaxpy at",
    "tile_with_an_odd_pitch": "its leading dimension has to be a multiple of 8 elements, and is 17",
    "odd_number_of_normals": "the curandGenerateNormal at .*: 1001 numbers, and none is generated",
    "group_copy_beyond": "invalid read at byte 508, 0 bytes past the end of a 508-byte allocation",
    "barrier_copy_beyond": "invalid read at byte 504, 0 bytes past the end of a 504-byte allocation",
    "pipeline_copy_beyond": "invalid read at byte 511, 0 bytes past the end of a 511-byte allocation",
    "tile_barrier_in_a_branch": "a tile: 32 of 64 threads have come; warp 1 has returned",
}
NOTED = {"plain_read_of_an_atomic_counter", "never_freed", "result_half_written", "last_element_not_written",
         "rows_without_their_pitch", "printed_and_not_awaited"}  # said, but the program has not failed by it
END_THE_PROCESS = {"host_reads_device_memory", "host_writes_device_memory", "memcpy_of_the_host", "freed_by_the_host",
                   "pinned_after_it_was_freed"}


def marked(file: str) -> dict:
    """{case: "file:line" where it is marked, in the file or in its header}"""
    return {line.split("// ")[-1]: f"{each}:{number}" for each in ("steps.h", file)
            for number, line in enumerate((HERE / each).read_text().splitlines(), 1) if "// " in line}


class Cases(unittest.TestCase):
    files: list = []

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        files = cls.files
        with ThreadPoolExecutor(2) as pool:
            made = pool.map(cls.made, files)
        cls.programs = dict(zip(files, made))

    @classmethod
    def made(cls, file: str) -> Path:
        directory = Path(cls.place.name) / file
        directory.mkdir()
        return program_of(Asked([str(HERE / file)], [], None, 30), True, BUILD, directory)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def ran(self, file: str, case: str, counted: bool = False, order: str = "forward") -> tuple:
        """(status, what was said, the report)"""
        report = Path(self.place.name) / f"{case}.{counted}.json"
        environment = {**os.environ, "SIMT_REPORT": str(report), "SIMT_SECONDS": "0", "SIMT_ORDER": order}
        if counted:
            environment["SIMT_COUNTS"] = "1"
        done = subprocess.run([self.programs[file], case], env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr, json.loads(report.read_text()) if report.exists() else None

    def cases(self, file: str) -> list:
        names = subprocess.run([self.programs[file]], capture_output=True, text=True, check=True).stdout
        return names.split()

    def expect_named(self, file: str, counted: bool) -> None:
        places = marked(file)
        for case, words in some(MISTAKES[file].items(), 5):
            with self.subTest(case, counted=counted):
                status, said, report = self.ran(file, case, counted)
                named = f"planted/{places[case]}\\b" if case in places else ""
                words = words if ".*" in words else re.escape(words)
                self.assertTrue([line for line in said.splitlines() if re.search(words, line) and re.search(named, line)],
                                said)
                if case in END_THE_PROCESS:
                    self.assertLess(status, 0)
                    continue
                self.assertEqual(status, 0, said)
                wrong = report["failures"] + report["mistakes"]
                self.assertEqual(len(wrong), 0 if case in NOTED else 1, wrong)


class Planted(Cases):
    files = [KERNELS, "correct.cu"] if FIRST else [*MISTAKES, "correct.cu"]

    def test_every_mistake_of_a_kernel_is_named_with_its_line(self):
        self.assertEqual(set(self.cases(KERNELS)), set(MISTAKES[KERNELS]))
        self.expect_named(KERNELS, counted=False)

    @at_length
    def test_every_mistake_of_the_host_is_named_with_its_line(self):
        self.assertEqual(set(self.cases(HOST)), set(MISTAKES[HOST]))
        self.expect_named(HOST, counted=False)

    @at_length
    def test_every_mistake_with_a_library_is_named(self):
        self.assertEqual(set(self.cases(LIBRARIES)), set(MISTAKES[LIBRARIES]))
        self.expect_named(LIBRARIES, counted=False)

    def test_nothing_is_said_of_correct_programs(self):
        cases = self.cases("correct.cu")
        self.assertGreaterEqual(len(cases), 40)
        for case in some(cases, 5):
            with self.subTest(case):
                status, said, report = self.ran("correct.cu", case)
                self.assertEqual((status, report["failures"], report["mistakes"]), (0, [], []), said)
                same = case.startswith("all_store_the_same")
                self.assertEqual(bool(re.search("several threads store the same value", said)), same, said)
                looks = case.startswith("look_before")
                self.assertEqual(bool(re.search("the read may be of an old value", said)), looks, said)
                unchanged = case.startswith("stores_what_was_there")
                self.assertEqual(bool(re.search("was there already", said)), unchanged, said)
                expected = ("the same value", "of an old value", "nobody may use it", "was there already")
                self.assertEqual([note for note in report["notes"] if not any(words in note for words in expected)], [])

    def test_the_page_has_every_case(self):
        page = (HERE.parents[2] / "simt" / "planted_mistakes.md").read_text()
        rows = dict(re.findall(r"^\| ([a-z0-9 ]+) \| (line|yes) \|", page, re.MULTILINE))
        said = {}
        for file, cases in MISTAKES.items():
            places = marked(file)
            said.update({case.replace("_", " "): "line" if case in places else "yes" for case in cases})
        self.assertEqual(rows, said)
        self.assertIn(f"names all {len(said)}, {list(said.values()).count('line')} of them at the marked line", page)
        self.assertIn(f"\n{len(self.cases('correct.cu'))} [correct programs]", page)


class Counted(Cases):
    files = [KERNELS]

    def test_counting_finds_the_same(self):
        self.expect_named(KERNELS, counted=True)


if __name__ == "__main__":
    unittest.main()
