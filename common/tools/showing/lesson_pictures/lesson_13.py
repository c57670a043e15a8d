"""13_fp8: the numbers that there are, what a scale is for, keys in the order of the registers, and consumers that take
turns."""

from tools.showing.lesson_pictures.canvas import Drawing

_LANES = ("blue", "orange", "green", "purple")


def the_numbers_that_there_are() -> Drawing:
    picture = Drawing(222, "The numbers of e4m3 between 1 and 4",
                      "Between 1 and 2 there are eight numbers, an eighth apart, and between 2 and 4 there are eight, "
                      "a quarter apart. The weight 1.55 becomes 1.5.")
    left, unit, y = 24.0, 117.0, 84.0

    def at(value: float) -> float:
        return left + (value - 1) * unit

    picture.text(14, 26, "e4m3 between 1 and 4", size=14, bold=True)
    picture.line((at(1), y), (at(4), y), color="ink")
    for first, step, color in ((1.0, 1 / 8, "blue"), (2.0, 1 / 4, "orange")):
        for number in range(8):
            value = first + number * step
            picture.line((at(value), y - 12), (at(value), y + 12), color=color, width=2.4)
    picture.line((at(4), y - 12), (at(4), y + 12), color="green", width=2.4)
    for whole in (1, 2, 3, 4):
        picture.text(at(whole), y + 32, str(whole), at="middle", size=13)
    picture.text(at(1.5), y - 24, "an eighth apart", at="middle", size=13, color="blue")
    picture.text(at(3), y - 24, "a quarter apart", at="middle", size=13, color="orange")
    picture.arrow((at(1.55), y + 62), (at(1.5), y + 16))
    picture.text(at(1.55), y + 78, "1.55 becomes 1.5", at="middle", size=13)
    picture.text(14, 190, "fp16 has 128 numbers between two of these marks.", size=13, color="note")
    picture.text(14, 210, "Each power of two begins with the same eight.", size=13, color="note")
    return picture


def what_a_scale_does() -> Drawing:
    values = (0.33, -2.75, 1.0, 5.6)
    scaled, rounded, back = ("26.4", "−220", "80", "448"), ("26", "−224", "80", "448"), ("0.325", "−2.8", "1", "5.6")
    rows = (("the tensor", tuple(str(value).replace("-", "−") for value in values), "empty"),
            ("divided by the scale", scaled, "blue-pale"), ("rounded: eight bits each", rounded, "orange-pale"),
            ("times the scale", back, "green-pale"))
    picture = Drawing(330, "Four numbers and their scale",
                      "The largest number, 5.6, divided by 448 is the scale, 0.0125. The four numbers are divided by "
                      "it and rounded; the product with the scale gives back nearly what there was.")
    for row, (title, words, color) in enumerate(rows):
        y = 14 + row * 80
        picture.text(14, y + 12, title, size=13, bold=row == 2)
        for column, word in enumerate(words):
            name = color.removesuffix("-pale")
            picture.box(14 + column * 94, y + 20, 86, 30, name, word, pale=color.endswith("-pale"), size=14)
            if row < len(rows) - 1:
                picture.arrow((57 + column * 94, y + 52), (57 + column * 94, y + 78 if row == 3 else y + 66))
    return picture


def keys_in_another_order() -> Drawing:
    picture = Drawing(356, "Sixteen keys in the order of the registers",
                      "After S = Q K transposed lane 0 holds the columns 0, 1, 8 and 9 of a row, lane 1 the columns 2, "
                      "3, 10 and 11. As the next product's A it should hold places 0 to 3. So key 8 goes to place 2.")
    left, wide, high = 14.0, 23.2, 30.0
    order = [8 * c + 2 * t + e for t in range(4) for c in range(2) for e in range(2)]

    def lane_of(key: int) -> int:
        return key % 8 // 2

    picture.text(left, 24, "S: whose registers hold which key", size=14, bold=True)
    picture.cells(left, 34, 16, 1, (wide, high), lambda key, _: f"{_LANES[lane_of(key)]}-pale",
                  lambda key, _: str(key), font=12.5)
    picture.text(left, 82, "a row of 16 keys; a colour is a lane", size=13, color="note")
    picture.text(left, 118, "P: four places to a register of eight-bit numbers", size=14, bold=True)
    picture.cells(left, 128, 16, 1, (wide, high), lambda place, _: f"{_LANES[place // 4]}-pale",
                  lambda place, _: str(order[place]), font=12.5)
    for lane in range(4):
        picture.box(left + lane * 4 * wide, 126, 4 * wide, high + 4, "none", edge=_LANES[lane])
        picture.text(left + (lane * 4 + 2) * wide, 178, f"lane {lane}", at="middle", size=12.5, color=_LANES[lane])
    picture.text(left, 214, "V transposed, its keys in the same order", size=14, bold=True)
    picture.cells(left, 224, 16, 3, (wide, 26), lambda place, _: f"{_LANES[place // 4]}-pale",
                  lambda place, _: str(order[place]), font=12.5)
    picture.text(left, 322, "Each row is a column of V. No number of P has to move", size=13, color="note")
    picture.text(left, 340, "to another lane: the sum does not care in which order.", size=13, color="note")
    return picture


def in_phase_and_out_of_it() -> Drawing:
    picture = Drawing(306, "Two consumers in phase, and out of it",
                      "In phase both consumers have their products at half speed for 1024 cycles, and then their "
                      "exponentials at half speed for 1024. Out of phase one has its products for 512 cycles while the "
                      "other one has its exponentials, and both have done as much after half of the time.")
    left, unit = 110.0, 60.0  # of 512 cycles: a part of 2560 cycles is shown
    products, exponentials = "blue", "orange"

    def rows(y: float, title: str, parts: tuple[tuple[tuple[float, float, str], ...], ...]) -> None:
        picture.text(14, y, title, size=14, bold=True)
        for consumer, spans in enumerate(parts):
            top = y + 14 + consumer * 40
            picture.text(14, top + 20, f"consumer {consumer}", size=13)
            for begin, length, color in spans:
                words = "products" if color == products else "exp"
                picture.box(left + begin * unit, top, length * unit - 2, 30, color, words, pale=True, size=12.5)

    together = ((0, 2, products), (2, 2, exponentials))
    rows(24, "in phase: both want the same unit", (together, together))
    first = tuple((float(n), 1.0, exponentials if n % 2 else products) for n in range(4))
    second = tuple((float(n), 1.0, products if n % 2 else exponentials) for n in range(4))
    rows(146, "out of phase: they take turns", (first, second))
    for n in range(5):
        picture.text(left + n * unit, 256, str(n * 512), at="middle", size=12.5, color="note")
    picture.text(14, 256, "cycles", size=12.5, color="note")
    picture.text(14, 290, "In as long, one tile for each consumer, or two.", size=13, color="note")
    return picture
