"""Is what stands between an exercise's markers code of a kernel, and nothing else?

On the SIMT engine a kernel is code of an ordinary process. So a solution may contain only what kernels need: the names
that its file and common/device offer, CUDA's and its mathematics, and variables, types and functions that it declares
itself. It has no lines for the preprocessor but #pragma unroll and nounroll, no strings but what static_assert says, no
assembly, and of the C++ library nothing but its names of integers.

That is a courtesy to students and protects nothing: grading takes any C++ to be hostile. It refuses what no kernel
has, lines for the preprocessor, strings and the like. Of all other words that are not known here it cannot say what
they do, and so believes only results: see ../grading/one_submission.py. ./workbook check says so before.
"""

import difflib
import re
import unicodedata
from dataclasses import dataclass

from tools.course import markers
from tools.course.exercises import Course, Exercise
from tools.course.initializers import first_initializer

KEYWORDS = set("""alignas auto bool break case char class const constexpr continue default do double else enum false
    float for if inline int int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t long mutable return short
    signed sizeof size_t static_assert static_cast struct switch template this true typedef typename unsigned using
    void while""".split())
CUDA = set("""__device__ __global__ __forceinline__ __restrict__ __shared__ __syncthreads __syncwarp __shfl_sync
    __shfl_xor_sync __shfl_down_sync __shfl_up_sync __any_sync __all_sync __ballot_sync __activemask __expf __logf
    __fdividef __frcp_rn __fmaf_rn __fmul_rn __fadd_rn __ldg __float2half __half2float __float2half_rn
    __floats2half2_rn __halves2half2 __float2bfloat16 __bfloat162float __half __half2 __nv_bfloat16 __nv_bfloat162
    __hadd __hmul __hfma __hadd2 __hmul2 __hfma2 threadIdx blockIdx blockDim gridDim warpSize x y z w dim3 uint2 uint3
    uint4 int2 int3 int4 float2 float3 float4 half half2 make_float2 make_float4 make_uint2 make_uint4 make_int2
    make_int4 atomicAdd atomicMax atomicMin atomicCAS expf exp2f logf log2f sqrtf rsqrtf fmaxf fminf fabsf fmaf sinf
    cosf powf floorf ceilf roundf max min abs INFINITY NAN FLT_MAX exp exp2 log log2 sqrt fmax fmin fabs sin cos pow
    floor ceil round isinf isnan isfinite unroll pragma fma rsqrt __fsqrt_rn __fdiv_rn __fsub_rn __frsqrt_rn __powf
    __sinf __cosf __exp10f __saturatef __int_as_float __float_as_int __float2int_rn __int2float_rn __half22float2
    __low2float __high2float __float22half2_rn __float2half2_rn __half2half2 __hsub __hneg __hmax __hmin __hmax2
    __hsub2 __bfloat1622float2 __float22bfloat162_rn __reduce_add_sync __reduce_max_sync __reduce_min_sync __popc __ffs
    __clz __launch_bounds__ __align__ volatile reinterpret_cast fmod fmodf tanhf erff
    rintf truncf lrintf signbit exp10f log1pf expm1f hypotf atomicExch atomicSub atomicOr atomicAnd make_float3
    make_int3 make_uint3 warpsize __threadfence __threadfence_block __syncthreads_and __syncthreads_or
    __syncthreads_count __match_any_sync ldexpf copysignf cbrtf tanf fdimf __uint_as_float __float_as_uint __umulhi
    __mul24 __brev __nanosleep assert asinf acosf atanf atan2f sinhf coshf __clzll __ffsll __popcll""".split())
TYPES = set("""auto bool char const double float int int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
    long short signed size_t unsigned void constexpr half half2 __half __half2 __nv_bfloat16 __nv_bfloat162 float2
    float3 float4 uint2 uint3 uint4 int2 int3 int4 dim3""".split())
# Refused even where the file's host code uses them, unless the exercise says that it may have them.
NEVER = set("""std simt testing cuda asm extern static thread_local new delete throw try catch operator friend
    namespace goto const_cast dynamic_cast typeid decltype union memcpy memset launch
    chapter stream exit abort fork system main signal raise""".split())
_MOST_CHANGED_LINES = 40  # of a debugging exercise
_MOST_CHARACTERS = 16 * 1024  # that are written: the longest solution has a twentieth of that
_MOST_WORDS = 200  # of one declaration
# What ends a line, or goes on behind a backslash, for only one of Python and the compiler: with it a comment of the one
# is code of the other.
_HIDES = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)")
_NAMES_OF_CONTROLS = {"\0": "a zero byte", "\f": "a form feed", "\v": "a vertical tab", "\r": "a carriage return alone"}
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|\.\d[\w.']*|[^\s\w]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ENDED = re.compile(r"/\*.*\*/", re.DOTALL)
_COMMENT_OR_STRING = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"[^\"\\\n]*\"", re.DOTALL)
# What makes no code: how often a loop is unrolled, attributes, and that integers are the library's, too.
_NO_CODE = re.compile(r"""^[ \t]*\#[ \t]*pragma[ \t]+(?:nounroll|(?:GCC[ \t]+)?unroll(?:[ \t(][\w \t+*/%()-]*)?)[ \t]*$
    | \[[ \t]*\[[ \t]*(?:maybe_unused|likely|unlikely|nodiscard|fallthrough)[ \t]*\][ \t]*\]
    | \bstd[ \t]*::[ \t]*(?=(?:u?int(?:8|16|32|64)_t|size_t)\b)""", re.MULTILINE | re.VERBOSE)
_WHY_ASSERTED = re.compile(r"(\bstatic_assert\s*\([^;\"]*),(\s*)\"[^\"\\\n]*\"(?=\s*\)\s*;)")
_NEW_TYPE = re.compile(r"\b(?:enum\s+)?(?:struct|class|typename|enum|using)\s+"
                       r"(?:(?:alignas|__align__)\s*\([^()]*\)\s*)?(\w+)|\btypedef\s[^;{}()]*?(\w+)\s*;")


@dataclass(frozen=True)
class Objection:
    line: int  # counted from 1, of the text that was looked at
    what: str
    refused: bool = True  # or only doubtful


@dataclass(frozen=True)
class Found:
    """An objection to a text of an exercise's file."""

    line: str  # for a person
    refused: bool


def refusal(course: Course, exercise: Exercise, text: str) -> "Found | None":
    """The first thing that grading refuses in this text of the exercise's file, else the first that it doubts. Failure
    if the markers are not there."""
    if exercise.kind == "debug":
        return _refusal_of_a_file(course, exercise, text)
    region = course.region(exercise, text)
    lines = text.splitlines(keepends=True)
    before, written = "".join(lines[: region.first]), "".join(lines[region.first : region.last - 1])
    if len(written) > _MOST_CHARACTERS:
        return _too_much(exercise, len(written))
    wrong = _hidden(written) or _early_of_a_region(course, exercise, written) or objection(
        written, _visible(course, exercise), exercise.may)
    return Found(f"{exercise.file}:{before.count(chr(10)) + wrong.line}: {wrong.what}",
                 wrong.refused) if wrong else None


def _refusal_of_a_file(course: Course, exercise: Exercise, text: str) -> "Found | None":
    """A debugging exercise is a whole file: the changes to it must be a kernel's code, and few."""
    handed_out = markers.without_markers(course.handed_out(exercise) or "")
    if len(text) > len(handed_out) + _MOST_CHARACTERS:
        return _too_much(exercise, len(text) - len(handed_out))
    before = handed_out.splitlines()
    after = re.split(r"\r?\n", text)  # lines as the compiler has them: splitlines() knows more ends than that
    after = after[:-1] if after[-1] == "" else after
    changed = 0
    written: list[tuple[int, str]] = []
    for kind, begin, end, first, last in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            changed += max(end - begin, last - first)
            written += [(number + 1, after[number]) for number in range(first, last)]
    if changed > _MOST_CHANGED_LINES:
        return Found(f"{exercise.file}: {changed} lines are not as they were handed out, and at most "
                     f"{_MOST_CHANGED_LINES} may be", True)
    mine = "\n".join(line for _, line in written)
    wrong = _hidden(mine) or _early([number for number, _ in written], text) or objection(
        mine, _visible(course, exercise), exercise.may, balanced=False)
    return Found(f"{exercise.file}:{written[wrong.line - 1][0]}: {wrong.what}", wrong.refused) if wrong else None


def _too_much(exercise: Exercise, characters: int) -> Found:
    return Found(f"{exercise.file}: {characters:,} characters more than were handed out, and at most "
                 f"{_MOST_CHARACTERS:,} may be", True)


def _visible(course: Course, exercise: Exercise) -> list[str]:
    """The sources whose names a solution may use."""
    return [course.student_files([exercise])[exercise.file],
            *(path.read_text() for path in sorted(course.root.glob("common/device/*.h")))]


def _early_of_a_region(course: Course, exercise: Exercise, written: str) -> "Objection | None":
    handed_out = course.student_files([exercise])[exercise.file]
    region = course.region(exercise, handed_out)
    lines = [region.first + number for number, _ in enumerate(written.splitlines(), 1)]
    return _early(lines, markers.filled(handed_out, region, written))


def _early(lines: list[int], text: str) -> "Objection | None":
    """To the first of these lines of a file that would run before the program does, counted among them."""
    found = first_initializer(text, set(lines))
    return Objection(lines.index(found) + 1, "a variable outside of functions, whose first value is no number and "
                                             "which is not constexpr") if found else None


def _hidden(written: str) -> "Objection | None":
    """The first character behind which the compiler could see other code than this check."""
    found = _HIDES.search(written)
    if not found:
        return None
    name = _NAMES_OF_CONTROLS.get(found[0]) or unicodedata.name(found[0], "a control character").lower()
    return Objection(written[: found.start()].count("\n") + 1,
                     f"{name} (U+{ord(found[0]):04X}): remove it, also from a comment; of what cannot be seen only "
                     "blanks, tabs and ends of lines may be here")


def objection(written: str, visible: list[str], may: list[str], balanced: bool = True) -> "Objection | None":
    """The first thing that does not belong in a kernel. `visible` are the sources whose names may be used, and `may`
    further words. With `balanced`, each bracket has its partner."""
    code, wrong = _without_comments(written)
    if wrong:
        return wrong
    code = _WHY_ASSERTED.sub(r"\1\2", _NO_CODE.sub(" ", code))
    for number, line in enumerate(code.splitlines(), 1):
        for what, found in [("a line for the preprocessor", "#" in line),
                            ("a string or a character", '"' in line or "'" in re.sub(r"\d'\d", "", line)),
                            ("a backslash", "\\" in line), ("a digraph", "%:" in line or "<:" in line or "<%" in line),
                            ("an attribute", re.search(r"\[\s*\[", line)),
                            ("a character that is not ASCII", not line.isascii())]:
            if found:
                return Objection(number, f"{what}: {_in_ascii(line.strip()[:60])}")
    return _brackets(code) if balanced and _brackets(code) else _names(code, visible, may)


def _in_ascii(line: str) -> str:
    return "".join(letter if letter.isascii() and letter.isprintable() else ascii(letter)[1:-1] for letter in line)


def _without_comments(text: str) -> "tuple[str, Objection | None]":
    if "\\\n" in text or re.search(r"\\[ \t]+\n", text):
        return "", Objection(text[: text.index("\\")].count("\n") + 1, "a line that goes on after a backslash")
    comments = [found for found in _COMMENT_OR_STRING.finditer(text) if found[0][0] == "/"]
    code, after = "", 0
    for one in comments:
        code += text[after : one.start()] + "\n" * one[0].count("\n") + " "
        after = one.end()
    code += text[after:]
    open_at = next((one.start() for one in comments if one[0].startswith("/*") and not _ENDED.fullmatch(one[0])),
                   len(text))
    no_begin = code.find("*/")
    if open_at < len(text) or no_begin >= 0:
        line = (text[:open_at] if open_at < len(text) else code[:no_begin]).count("\n") + 1
        return "", Objection(line, "a comment that does not end, or does not begin")
    return code, None


def _brackets(code: str) -> "Objection | None":
    partner, line = {")": "(", "]": "[", "}": "{"}, 1
    open_ones: list[tuple[str, int]] = []
    for character in code:
        line += character == "\n"
        if character in "([{":
            open_ones.append((character, line))
        elif character in partner and (not open_ones or open_ones.pop()[0] != partner[character]):
            return Objection(line, f"a {character} without its {partner[character]}")
    return Objection(open_ones[-1][1], f"a {open_ones[-1][0]} that is not closed") if open_ones else None


def _names(code: str, visible: list[str], may: list[str]) -> "Objection | None":
    sources = "\n".join(visible)
    known = (set(_NAME.findall(sources)) | KEYWORDS | CUDA) - NEVER | set(may)
    own_types = _types_of(code)
    types = TYPES | _types_of(sources) | own_types
    tokens = [(token, number) for number, line in enumerate(code.splitlines(), 1) for token in _TOKEN.findall(line)]
    words = [token for token, _ in tokens]
    mine = _Scopes()
    for at, (word, number) in enumerate(tokens):
        if not _NAME.fullmatch(word):
            mine.see(word, word == "{" and _begins_an_enum(words, at))
            if word == "(" and _calls_no_name(words, at, types):
                return _doubt(number, "a call of what is no name")
            if word == "*" and (words[at - 1 : at] == ["."] or words[at - 2 : at] == ["-", ">"]):
                return _doubt(number, "a pointer to a member")
            if words[at : at + 2] == [":", ":"] and words[at - 1 : at] != [":"] and not (
                    set(words[at - 1 : at]) & own_types or _is_offered(words, at, sources)):
                return _doubt(number, "::, a name of somewhere else")
            continue
        if word == "static" and words[at + 1 : at + 2] in (["constexpr"], ["const"], ["__device__"]):
            continue
        if word in NEVER and word not in may:
            return _doubt(number, f"{word}, which a kernel does not need")
        if re.match(r"__|_[A-Z]", word) and word not in CUDA:
            return _doubt(number, f"{word}, which a kernel does not need")
        if word.startswith("cuda"):
            return _doubt(number, f"{word}, which the host calls")
        if word in known:
            if word in types - TYPES and at and words[at - 1] in types - {"const", "constexpr", "typename"}:
                return _doubt(number, f"{word}, which is a type, as a variable")
            if word in KEYWORDS or word in types:
                continue
            if _declared(words, at, types):  # in the place of what the sources call so
                mine.declare(word, _is_a_function(words, at))
            elif words[at + 1 : at + 2] == ["("] and not mine.open.get(word, True):
                return _doubt(number, f"{word}, which is called and is no function here")
            continue
        if word in own_types and _begins_a_type(words, at):
            parameter = words[at - 1] == "typename" or words[at - 1] == "class" and words[at + 1] in ">,="
            mine.declare(word, not parameter)  # of a template, whose end is not known here
            continue
        member = words[at - 1 : at] == ["."] or words[at - 2 : at] in (["-", ">"], [":", ":"])
        if member and (word in mine.ended or word in mine.open):
            continue
        if word in mine.open and not member:
            # What is no function where it is declared calls something else where it is called.
            if words[at + 1 : at + 2] == ["("] and not mine.open[word] and not _declared(words, at, types):
                return _doubt(number, f"{word}, which is called and is no function here")
            continue
        if member:
            return _doubt(number, f"{word}, which nothing here has")
        if not _declared(words, at, types):
            return _doubt(number, f"{word}, which neither the file nor common/device offers, and which is not "
                                  "declared here")
        mine.declare(word, _is_a_function(words, at))
    return None


class _Scopes:
    """Names that are declared here, as long as their block is open."""

    def __init__(self) -> None:
        self.open: dict[str, bool] = {}  # {name: is it a function, or a type}
        self.declared: list[list[str]] = [[]]  # in each open block
        self.ended: set[str] = set()  # of blocks that are closed: members, perhaps

    def declare(self, name: str, can_be_called: bool) -> None:
        self.open[name] = can_be_called
        self.declared[-1].append(name)

    def see(self, token: str, of_an_enum: bool) -> None:
        if token == "{":
            self.declared.append(self.declared[-1] if of_an_enum else [])  # its names are of the block around it
        elif token == "}" and len(self.declared) > 1:
            names = self.declared.pop()
            for name in names if names is not self.declared[-1] else []:
                self.open.pop(name, None)
                self.ended.add(name)


def _doubt(line: int, what: str) -> Objection:
    return Objection(line, what, word_refused(what.partition(",")[0]))


def word_refused(word: str) -> bool:
    """Words with which a text gets at what is not its own while it is compiled."""
    return bool(re.match(r"asm$|_+asm|_Pragma$|__has_|import$|module$|export$", word))


def _calls_no_name(words: list[str], at: int, types: set[str]) -> bool:
    """Whether this ( may begin the arguments of whatever stands in brackets before it: an address, say. Not those of
    if (..) and its like, and not what (float) converts."""
    if words[at - 1 : at] == ["]"]:
        before = words[max(0, _partner(words, at - 1, "[") - 1)]  # of a lambda's parameters no name, but for these
        return before in ("]", ")") or _NAME.fullmatch(before) is not None and before not in ("return", "auto")
    if words[at - 1 : at] != [")"]:
        return False
    opening = _partner(words, at - 1, "(")
    inside = words[opening + 1 : at - 1]
    converts = bool(inside) and all(word in types | {"*", "&", "unsigned", "const"} for word in inside) \
        and inside[0] not in "*&"
    return not converts and words[opening - 1 : opening] not in (["if"], ["for"], ["while"], ["switch"], ["alignas"],
                                                                 ["__launch_bounds__"], ["__align__"])


def _is_a_function(words: list[str], at: int) -> bool:
    """Whether the name is declared with parameters and a body, or is a lambda's: else what stands in brackets is its
    first value."""
    if words[at + 1 : at + 3] == ["=", "["]:
        return True
    if words[at + 1 : at + 2] != ["("]:
        return False
    depth = 0
    for end in range(at + 1, min(len(words), at + _MOST_WORDS)):
        depth += (words[end] == "(") - (words[end] == ")")
        if depth == 0:
            return words[end + 1 : end + 2] == ["{"]
    return False


def _partner(words: list[str], closing: int, opening: str) -> int:
    """Where the bracket is that this one closes; 0 if it is far."""
    depth = 0
    for at in range(closing, max(-1, closing - _MOST_WORDS), -1):
        depth += (words[at] == words[closing]) - (words[at] == opening)
        if depth == 0:
            return at
    return 0


def _is_offered(words: list[str], at: int, sources: str) -> bool:
    """Whether the two names around this :: stand like that in the sources, as attention::Mask does."""
    return 0 < at < len(words) - 2 and re.search(rf"\b{re.escape(words[at - 1])}::{re.escape(words[at + 2])}\b",
                                                 sources) is not None


def _types_of(text: str) -> set[str]:
    return {one or other for one, other in _NEW_TYPE.findall(text)}


def _begins_a_type(words: list[str], at: int) -> bool:
    """Whether this name of a type is declared here."""
    before = at - 1
    if words[before : at] == [")"]:
        before = _partner(words, before, "(") - 2  # struct alignas(16) Pair
    if words[max(0, before)] in ("struct", "class", "enum", "using", "typename"):
        return True
    begin = next((place for place in range(before, max(-1, at - _MOST_WORDS), -1) if words[place] in ";{}"), -1)
    return words[begin + 1] == "typedef" and words[at + 1 : at + 2] == [";"]


def _begins_an_enum(words: list[str], at: int) -> bool:
    """Whether this { is that of an enum {..}, enum class Name : int {..}."""
    return re.search(r"(?:^| )enum(?: class| struct)?(?: \w+)?(?: :(?: \w+)+)?$",
                     " ".join(words[max(0, at - 8) : at])) is not None


def _opening(words: list[str], at: int) -> int:
    """Where the innermost bracket is that is open there; -1 if none is, or it is far."""
    depth = 0
    for before in range(at - 1, max(-1, at - _MOST_WORDS), -1):
        depth += (words[before] in ")]}") - (words[before] in "([{")
        if depth < 0:
            return before
    return -1


def _declared(words: list[str], at: int, types: set[str]) -> bool:
    """Whether a variable or function of this name is declared here: a type stands before it, perhaps with * or &."""
    before = at - 1
    while before >= 0 and words[before] in ("*", "&"):
        before -= 1
    if before < 0:
        return False
    if words[before] in types or words[before] == "using":
        return True
    if words[before] == ">":
        return _template_of(words, before) in types
    opening = _opening(words, at)
    if words[opening] == "{" and _begins_an_enum(words, opening) and before == at - 1 and words[before] in "{,":
        return True
    if words[opening] == "[" and words[at + 1 : at + 2] == ["="] and words[before] in "[,":
        return not _NAME.fullmatch(words[opening - 1]) and words[opening - 1] not in ")]"  # [base = lane]: no subscript
    if words[before] == "(" and words[at - 1] == "&" and words[at + 1 : at + 3] == [")", "["]:
        return words[before - 1] in types  # float (&x)[4]
    if words[before] == ",":
        return _in_a_declaration(words, before, types)
    bound = words[before] == "[" and before > 0 and words[before - 1] in ("auto", "&")  # auto [a, b], auto& [a, b]
    return bound and "auto" in words[max(0, before - 2) : before]


def _template_of(words: list[str], closing: int) -> str:
    """The name before the < that belongs to this >."""
    depth = 0
    for at in range(closing, max(-1, closing - _MOST_WORDS), -1):
        depth += (words[at] == ">") - (words[at] == "<")
        if words[at] in ";{}":
            return ""
        if depth == 0:
            return words[at - 1] if at else ""
    return ""


def _in_a_declaration(words: list[str], comma: int, types: set[str]) -> bool:
    """Whether the comma is between variables of one declaration (int a = 1, b), or of auto [a, b]."""
    depth = 0
    for at in range(comma - 1, max(-1, comma - _MOST_WORDS), -1):
        depth += (words[at] in ")]}") - (words[at] in "([{")
        if depth < 0:
            if words[at] == "[":
                return at > 0 and (words[at - 1] == "auto" or words[at - 2 : at] == ["auto", "&"])
            return words[at] in "({" and words[at + 1] in types and (words[at] == "{" or words[at - 1] in ("for", "if"))
        if depth == 0 and words[at] in ";}" and at < comma - 1:
            return words[at + 1] in types
    return comma < _MOST_WORDS and bool(words) and words[0] in types
