"""03_tiling: what a tile shares, chunks between barriers, what a thread owns, and banks with and without padding."""

from tools.showing.lesson_pictures.canvas import Drawing
from tools.showing.lesson_pictures.constants import constant

_TILES, _REGISTERS, _PADDED = "03_tiling/1_tiles.cu", "03_tiling/2_registers.cu", "03_tiling/3_padded.cu"
_D, _BANKS, _SERVED = 64, 32, 8  # numbers of a row; of shared memory; lanes whose 16 bytes a wavefront serves


def a_tile_and_its_chunks() -> Drawing:
    tile, depth = constant(_TILES, "tile"), constant(_TILES, "depth")
    chunks = _D // depth
    picture = Drawing(330, "A tile of S, and the chunks of Q and K that it needs",
                      f"A thread block makes a tile of {tile} by {tile} numbers of S. It needs {tile} rows of Q and "
                      f"{tile} rows of K. Of these it has a chunk of {depth} columns in shared memory at a time, "
                      f"{chunks} chunks one after the other. Each number serves {tile} results.")
    left, top, wide = 160.0, 132.0, 100.0  # of the tile
    picture.text(12, 24, "A thread block makes a tile of S", size=15, bold=True)
    for chunk in range(chunks):
        pale = "orange" if chunk == 0 else "empty"
        picture.box(24 + 60 * chunk, top, 58, wide, pale, f"{depth}" if chunk == 0 else "", pale=chunk == 0)
        picture.box(left, 46 + 36 * (chunks - 1 - chunk), wide, 34, "green" if chunk == 0 else "empty",
                    f"{depth}" if chunk == 0 else "", pale=chunk == 0)
    picture.box(left, top, wide, wide, "blue", pale=True)
    picture.text(left + 58, top + 62, f"{tile} × {tile}", at="middle", bold=True, size=15)
    picture.text(left + 58, top + 82, "results", at="middle")
    picture.text(84, top + wide + 18, f"{tile} rows of Q", at="middle")
    picture.text(272, 74, f"{tile} rows of K,", size=13)
    picture.text(272, 92, "turned", size=13)
    picture.text(272, 150, "Coloured: the", color="note")
    picture.text(272, 168, "chunk in shared", color="note")
    picture.text(272, 186, "memory now.", color="note")
    picture.line((24, top + 24), (left + wide, top + 24), color="orange", dashed=True)
    picture.line((left + 16, 46), (left + 16, top + wide), color="green", dashed=True)
    picture.text(12, 284, f"A number of Q serves a line of the tile: {tile} results.")
    picture.text(12, 306, f"A number of K serves a column: {tile} results.")
    return picture


def between_two_barriers() -> Drawing:
    picture = Drawing(232, "A chunk, and the two barriers around it",
                      "Time runs to the right. Four warps copy their parts of a chunk, wait at a barrier until all "
                      "have copied, multiply, and wait at a second barrier until all have multiplied. Then they "
                      "copy the next chunk over it.")
    picture.text(74, 24, "time →", color="note")
    copies, products = (62, 76, 54, 68), (108, 86, 116, 98)
    first, second = 74 + max(copies), 74 + max(copies) + 6 + max(products)
    for warp, (copy, product) in enumerate(zip(copies, products)):
        y = 36 + 32 * warp
        picture.text(64, y + 18, f"warp {warp}", at="end")
        picture.box(74, y, copy, 26, "green", "copy", pale=True, size=12.5)
        picture.box(first + 6, y, product, 26, "blue", "multiply", pale=True, size=12.5)
        picture.box(second + 6, y, copy, 26, "green", "copy", pale=True, size=12.5)
        if copy < max(copies):
            picture.line((74 + copy + 3, y + 13), (first, y + 13), dashed=True)
        if product < max(products):
            picture.line((first + 6 + product + 3, y + 13), (second, y + 13), dashed=True)
    for x in (first + 3, second + 3):
        picture.line((x, 30), (x, 168), color="orange", width=3)
    picture.text(first + 3, 184, "chunk complete", at="middle", color="orange", size=12.5)
    picture.text(second + 3, 184, "chunk used", at="middle", color="orange", size=12.5)
    picture.text(12, 218, "Orange: __syncthreads(). Dashed: a warp waits.", size=12.5, color="note")
    return picture


def what_a_thread_owns() -> Drawing:
    tile, rows, cols = (constant(_REGISTERS, name) for name in ("tile", "rows", "cols"))
    down, across = tile // rows, tile // cols  # threads
    picture = Drawing(400, "The results of one thread in the rung registers",
                      f"A tile of {tile} by {tile} results. {across} threads lie across and {down} down. One thread "
                      f"owns {rows} by {cols} results: every {down}th row and every {across}th column. For four steps "
                      f"of depth it reads {rows} times four numbers of Q and {cols} times four of K, which makes "
                      f"{rows * cols * 4} multiply-adds.")
    picture.text(12, 24, f"One thread owns {rows} × {cols} of {tile} × {tile} results", size=15, bold=True)
    left, top, cell = 92.0, 60.0, 4.1
    picture.box(left, top, cell * tile, cell * tile, "blue", pale=True)
    for column in range(cols):
        x = left + cell * across * column
        picture.line((x, top), (x, top + cell * tile), color="blue")
        picture.box(x, top - 16, cell, 14, "green", frame=False)
        picture.line((x + cell / 2, top), (x + cell / 2, top + cell * tile), color="green", dashed=True, width=0.8)
    for row in range(rows):
        y = top + cell * down * row
        picture.box(left - 18, y, 16, cell, "orange", frame=False)
        picture.line((left, y + cell / 2), (left + cell * tile, y + cell / 2), color="orange", dashed=True, width=0.8)
        for column in range(cols):
            picture.box(left + cell * across * column, y, cell + 1.5, cell + 1.5, "ink", frame=False)
    picture.text(left + cell * tile / 2, 340, f"{across} columns apart, {down} rows apart", at="middle", color="note")
    picture.text(70, top + 120, f"{rows} of Q", at="end")
    picture.text(362, top - 4, f"{cols}", at="start")
    picture.text(362, top + 12, "of K")
    picture.text(12, 366, f"Four steps of depth: {rows} + {cols} reads of 16 bytes")
    picture.text(12, 386, f"feed {rows} · {cols} · 4 = {rows * cols * 4} multiply-adds.", bold=True)
    return picture


def banks() -> Drawing:
    depth, pad = constant(_PADDED, "depth"), constant(_PADDED, "pad")
    picture = Drawing(420, "Eight lanes read the same place of eight rows: banks without and with padding",
                      f"Shared memory has {_BANKS} banks. Rows of {depth} floats all begin in bank 0, so eight lanes "
                      f"want the same four banks, 8 wavefronts. Rows of {depth + pad} floats begin {pad} banks "
                      "further on each, so eight lanes want all 32 banks, 1 wavefront.")
    for top, length, title, color in [(30, depth, f"Rows of {depth} floats: 8 wavefronts", "orange"),
                                      (240, depth + pad, f"Rows of {depth} + {pad} floats: 1 wavefront", "blue")]:
        picture.text(12, top - 4, title, size=14.5, bold=True)
        picture.text(62, top + 16, "lane", at="end", color="note", size=12.5)
        for bank in (0, 8, 16, 24):
            picture.text(70 + 10 * bank, top + 16, f"bank {bank}", color="note", size=12.5)
        for row in range(_SERVED):
            y = top + 22 + 16 * row
            begin = row * length % _BANKS
            picture.text(62, y + 12, str(row), at="end", size=12.5)
            picture.box(70, y, 10 * _BANKS, 14, "empty")
            for bank in range(begin, begin + 4):
                picture.box(70 + 10 * (bank % _BANKS), y, 10, 14, color)
    picture.text(12, 200, "Four banks serve all eight lanes, one after the other.", color="note", size=12.5)
    picture.text(12, 409, "All banks serve one lane each, at once.", color="note", size=12.5)
    return picture
