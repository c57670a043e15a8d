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
from functools import lru_cache

from tools.course import markers
from tools.course.exercises import Course, Exercise
from tools.course.initializers import NOT_CONST, first_variable

# CUDA's types of several numbers: float2, ..
_VECTORS = {f"{name}{size}" for name in ("float", "double", *(f"{u}{one}" for one in ("char", "short", "int", "long",
                                         "longlong") for u in ("", "u"))) for size in range(1, 5)}
KEYWORDS = set("""alignas auto bool break case char class const constexpr continue default do double else enum explicit
    false float for if inline int int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uint ushort long
    mutable noexcept nullptr private public return short signed sizeof size_t static_assert static_cast struct switch
    template this true typedef typename unsigned using void while""".split())
_WORDS = set("""__device__ __host__ __global__ __forceinline__ __inline__ __restrict__ __shared__ threadIdx
    blockIdx blockDim gridDim warpSize x y z w INFINITY NAN FLT_MAX unroll pragma __launch_bounds__ __align__
    volatile reinterpret_cast FLT_MIN FLT_EPSILON INT_MAX INT_MIN UINT_MAX __constant__""".split())
# Functions of CUDA that take values and return one, or load, store and add what they point to.
_FUNCTIONS = re.compile(r"""__(?:u?(?:char|short|int|ll)|floats?|double|half|halves|bfloat16|lows?|highs?)\d*2[a-z]\w*
    | __(?:u?short|u?int|float|u?longlong|double|half|bfloat16)_as_\w+
    | __(?:[fd](?:add|sub|mul|div|rcp|sqrt|rsqrt|maf)|fma)_r[nzud] | __fdividef | __saturatef
    | __h(?:add|sub|mul|fma|div|neg|abs|min|max|isnan)2?(?:_rn)? | __(?:exp|exp10|log|log2|log10|pow|sin|cos|tan)f
    | __(?:brev|clz|ffs|popc)(?:ll)? | __u?mul(?:hi|24|64hi) | __u?sad | __u?r?hadd | __dp4a | __dp2a_(?:lo|hi)
    | __funnelshift_[lr]c? | __byte_perm | __ld(?:g|ca|cg|cs|lu|cv) | __st(?:wb|cg|cs|wt)
    | atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(?:_block|_system)?
    | make_u?(?:char|short|int|long|longlong|float|double)[1-4] | make_half2""", re.VERBOSE)
_MORE_FUNCTIONS = set("""__syncthreads __syncwarp __shfl_sync __shfl_xor_sync __shfl_down_sync __shfl_up_sync __any_sync
    __all_sync __ballot_sync __activemask expf exp2f logf log2f sqrtf rsqrtf fmaxf fminf fabsf fmaf sinf cosf powf
    floorf ceilf roundf max min abs exp exp2 log log2 sqrt fmax fmin fabs sin cos pow floor ceil round isinf isnan
    isfinite fma rsqrt __reduce_add_sync __reduce_max_sync __reduce_min_sync fmod fmodf tanhf erff rintf truncf lrintf
    signbit exp10f log1pf expm1f hypotf __threadfence __threadfence_block __syncthreads_and __syncthreads_or
    __syncthreads_count __match_any_sync ldexpf copysignf cbrtf tanf fdimf __nanosleep assert asinf acosf atanf atan2f
    sinhf coshf __reduce_and_sync __reduce_or_sync __reduce_xor_sync __threadfence_system erfcf rcbrtf clock64
    __trap""".split())
CUDA = _WORDS | _MORE_FUNCTIONS
TYPES = _VECTORS | set("""auto bool char const double float int int8_t int16_t int32_t int64_t uint8_t uint16_t
    uint32_t uint64_t long short signed size_t unsigned void constexpr half half2 __half
    __half2 __nv_bfloat16 __nv_bfloat162 dim3 uint ushort""".split())
# Refused even where the file's host code uses them, unless the exercise says that it may have them.
NEVER = set("""std simt testing cuda asm extern static thread_local new delete throw try catch friend
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
# What makes no code: how often a loop is unrolled, attributes, and that integers and functions are the library's, too.
_NO_CODE = re.compile(r"""^[ \t]*\#[ \t]*pragma[ \t]+(?:nounroll|(?:GCC[ \t]+)?unroll(?:[ \t(][\w \t+*/%()-]*)?)[ \t]*$
    | \[[ \t]*\[[ \t]*(?:maybe_unused|likely|unlikely|nodiscard|fallthrough)[ \t]*\][ \t]*\]
    | \bstd[ \t]*::[ \t]*(?=(?:u?int(?:8|16|32|64)_t|size_t)\b)
    | (?:\bstd[ \t]*|(?<=\breturn)[ \t]+|(?<![\w>:)\]])(?<![\w>:)\]][ \t]))::[ \t]*
      (?=(?:min|max|abs|exp2?|log2?|sqrt|pow|fma|fmin|fmax|fabs|floor|ceil|round|isinf|isnan|isfinite)[ \t]*\()
    """, re.MULTILINE | re.VERBOSE)
_OPERATORS = re.compile(r"\( \)|\[ \]|[-+*/%&|^<>=!](?: [<>=])?(?: =)?")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^;<>(){}]*>\s*)?\(")
_DEFINED = re.compile(r"\b([A-Za-z_]\w*)\s*\((?:[^(){};]|\([^(){};]*\))*\)\s*\{")
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
        written, _visible(course, exercise), exercise.may, stub=course.handed_out(exercise))
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
    """To the first of these lines of a file with a variable that cannot stand there, counted among them."""
    found = first_variable(text, set(lines))
    return Objection(lines.index(found[0]) + 1, found[1]) if found else None


def _hidden(written: str) -> "Objection | None":
    """The first character behind which the compiler could see other code than this check."""
    found = _HIDES.search(written)
    if not found:
        return None
    name = _NAMES_OF_CONTROLS.get(found[0]) or unicodedata.name(found[0], "a control character").lower()
    return Objection(written[: found.start()].count("\n") + 1,
                     f"{name} (U+{ord(found[0]):04X}): remove it, also from a comment; of what cannot be seen only "
                     "blanks, tabs and ends of lines may be here")


def objection(written: str, visible: list[str], may: list[str], balanced: bool = True,
              stub: "str | None" = None) -> "Objection | None":
    """The first thing that does not belong in a kernel. `visible` are the sources whose names may be used, its own file
    first, and `may` further words. With `balanced`, each bracket has its partner. Where a stub was handed out, no name
    but its own may come to mean another function to the lines around it."""
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
    calls = set() if stub is None else set(_CALLED.findall(visible[0])) - set(_NAME.findall(stub)) - KEYWORDS
    return _brackets(code) if balanced and _brackets(code) else _names(code, visible, may, calls)


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


@lru_cache(maxsize=16)  # the same for all who hand in an exercise
def _read(sources: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """(the names, the types, the functions) there."""
    return frozenset(_NAME.findall(sources)), frozenset(_types_of(sources)), frozenset(_DEFINED.findall(sources))


def _names(code: str, visible: list[str], may: list[str], calls: set[str]) -> "Objection | None":
    sources = "\n".join(visible)
    names, types_of_sources, functions = _read(sources)
    known = (names | KEYWORDS | TYPES | CUDA) - NEVER | set(may)
    own_types = _types_of(code)
    types = TYPES | types_of_sources | own_types
    tokens = [(token, number) for number, line in enumerate(code.splitlines(), 1) for token in _TOKEN.findall(line)]
    words = [token for token, _ in tokens]
    called = set() if _points_to_functions(words, types, functions) else _called_types(words)
    mine = _Scopes()

    def declare(word: str, at: int) -> "str | None":
        """What is wrong with that."""
        function = _is_a_function(words, at)
        what = words[_before_pointers(words, at)]
        if word in calls and (function or what in own_types | {"auto", ">"}):
            return f"{word}, which the lines around call, as something else"
        mine.declare(word, function or words[at - 1] in "&" + what and what in called)
        return None

    for at, (word, number) in enumerate(tokens):
        if not _NAME.fullmatch(word):
            mine.see(word, word == "{" and _begins_an_enum(words, at))
            if word == "(" and _calls_no_name(words, at, types, called):
                return _doubt(number, "a call of what is no name")
            if word == "*" and (words[at - 1 : at] == ["."] or words[at - 2 : at] == ["-", ">"]):
                return _doubt(number, "a pointer to a member")
            if words[at : at + 2] == [":", ":"] and words[at - 1 : at] != [":"] and not (
                    set(words[at - 1 : at]) & own_types or _is_offered(words, at, sources)):
                return _doubt(number, "::, a name of somewhere else")
            continue
        if word == "static" and words[at + 1 : at + 2] == ["__device__"] and _is_kept(words, at):
            return Objection(number, NOT_CONST)
        if word == "static" and words[at + 1 : at + 2] in (["constexpr"], ["const"], ["__device__"]):
            continue
        if word == "extern" and words[at + 1 : at + 2] == ["__shared__"]:
            return Objection(number, "extern __shared__: here a kernel gets its dynamic shared memory as "
                                     "dynamic_shared<float>(), which is a pointer to its beginning")
        if word == "operator" and _OPERATORS.match(" ".join(words[at + 1 : at + 4])):
            continue
        is_cudas = word in CUDA or _FUNCTIONS.fullmatch(word) is not None
        if word in NEVER | {"operator"} and word not in may:
            return _doubt(number, f"{word}, which a kernel does not need")
        if re.match(r"__|_[A-Z]", word) and not is_cudas and word not in TYPES:
            return _doubt(number, f"{word}, which a kernel does not need")
        if word.startswith("cuda"):
            return _doubt(number, f"{word}, which the host calls")
        if word in calls & own_types:
            return _doubt(number, f"{word}, which the lines around call, as a type")
        member = words[at - 1 : at] == ["."] or words[at - 2 : at] in (["-", ">"], [":", ":"])
        if member and words[at + 1 : at + 2] == ["("] and not mine.member_can_be_called(word):
            return _doubt(number, f"{word}, which is called and is no function here")
        if word in known or is_cudas:
            if word in types - TYPES and at and words[at - 1] in types - {"const", "constexpr", "typename"} and not (
                    word in own_types and _begins_a_type(words, at)):
                return _doubt(number, f"{word}, which is a type, as a variable")
            if word in KEYWORDS or word in types:
                continue
            if _declared(words, at, types):  # in the place of what the sources call so
                if wrong := declare(word, at):
                    return _doubt(number, wrong)
            elif words[at + 1 : at + 2] == ["("] and not member and not mine.open.get(word, True) and not \
                    _begins_a_member(words, at, own_types):
                return _doubt(number, f"{word}, which is called and is no function here")
            continue
        if word in own_types and _begins_a_type(words, at):
            parameter = words[at - 1] == "typename" or words[at - 1] == "class" and words[at + 1] in ">,="
            mine.declare(word, not parameter)  # of a template, whose end is not known here
            continue
        if member and (word in mine.ended or word in mine.open):
            continue
        if word in mine.open and not member:
            # What is no function where it is declared calls something else where it is called.
            if words[at + 1 : at + 2] == ["("] and not mine.open[word] and not _declared(words, at, types) and not \
                    _begins_a_member(words, at, own_types):
                return _doubt(number, f"{word}, which is called and is no function here")
            continue
        if member:
            return _doubt(number, f"{word}, which nothing here has")
        if not _declared(words, at, types):
            return _doubt(number, f"{word}, which neither the file nor common/device offers, and which is not "
                                  "declared here")
        if wrong := declare(word, at):
            return _doubt(number, wrong)
    return None


class _Scopes:
    """Names that are declared here, as long as their block is open."""

    def __init__(self) -> None:
        self.open: dict[str, bool] = {}  # {name: can it be called: a function, an object of some types, or a type}
        self.declared: list[list[str]] = [[]]  # in each open block
        self.ended: dict[str, bool] = {}  # of blocks that are closed: members, perhaps
        # What can be called and is declared in parentheses, as a parameter, can be in the block behind them, no longer.
        self.parameters: list[list[str]] = []  # in each open parenthesis
        self.behind: list[str] = []
        self.of_blocks: list[list[str]] = [[]]

    def declare(self, name: str, can_be_called: bool) -> None:
        self.open[name] = can_be_called
        self.declared[-1].append(name)
        if self.parameters and can_be_called:
            self.parameters[-1].append(name)

    def member_can_be_called(self, name: str) -> bool:
        return self.open.get(name, True) and self.ended.get(name, True)

    def see(self, token: str, of_an_enum: bool) -> None:
        if token == "(":
            self.parameters.append([])
        elif token == ")" and self.parameters:
            self.behind += self.parameters.pop()
        elif token == "{":
            self.declared.append(self.declared[-1] if of_an_enum else [])  # its names are of the block around it
            self.of_blocks.append(self.behind)
            self.behind = []
        elif token == "}" and len(self.declared) > 1:
            names = self.declared.pop()
            for name in names if names is not self.declared[-1] else []:
                self.ended[name] = self.open.pop(name, False) and self.ended.get(name, True)
            self._end(self.of_blocks.pop())
        elif token == ";":
            self._end(self.behind)
            self.behind = []

    def _end(self, names: list[str]) -> None:
        self.open.update({name: False for name in names if name in self.open})


def _doubt(line: int, what: str) -> Objection:
    return Objection(line, what, word_refused(what.partition(",")[0]))


def word_refused(word: str) -> bool:
    """Words with which a text gets at what is not its own while it is compiled."""
    return bool(re.match(r"asm$|_+asm|_Pragma$|__has_|import$|module$|export$", word))


def _is_kept(words: list[str], at: int) -> bool:
    """Whether this begins no function, but a variable that keeps its value from call to call."""
    end = next((end for end in range(at, min(len(words), at + _MOST_WORDS)) if words[end] in "(;={["), at)
    return words[end] != "(" and not {"const", "constexpr"} & set(words[at:end])


def _points_to_functions(words: list[str], types: set[str], of_sources: frozenset[str]) -> bool:
    """Whether something here may be a function's address, or the type of one. What is an address can be changed: a call
    of it may be one of anything."""
    lambdas = {words[at] for at in range(len(words) - 2) if words[at + 1 : at + 3] == ["=", "["]}
    own = {word for at, word in enumerate(words) if at and words[at - 1] in types and _NAME.fullmatch(word)
           and words[at + 1 : at + 2] == ["("] and _is_a_function(words, at)}
    functions = of_sources - KEYWORDS - _WORDS | _MORE_FUNCTIONS | own
    for at, word in enumerate(words):
        before, after = words[at - 1] if at else ";", words[at + 1] if at + 1 < len(words) else ";"
        if word == "[" and before in "+*-~" or word == "*" and before == "(" and after == ")":
            return True
        if word in lambdas and after not in ("(", "=") and not (before in "(," and after in "),"):
            return True
        if word == "(" and before in types and after in types and words[at + 2 : at + 3] != ["("]:
            closing = _closing(words, at)
            if words[closing + 1 : closing + 2] not in (["{"], [":"]):  # a constructor's parameters
                return True
        is_value = word not in types and before != "." and words[at - 2 : at] != ["-", ">"]
        if is_value and (word in functions or _FUNCTIONS.fullmatch(word)) and not _declared(words, at, types):
            template = re.match(r"< (?:[\w ,*]+) > (\()?", " ".join(words[at + 1 : at + 20]))
            if after != "(" and not (template and template[1]):
                return True
    return False


def _called_types(words: list[str]) -> set[str]:
    """Types whose objects can be called: own ones with an operator(); as parameters those of templates, and auto."""
    text = " ".join(words)
    found = {"auto", *re.findall(r"[<,] (?:class|typename) (\w+)(?= [>,])", text)}
    for one in re.finditer(r"\b(?:struct|class) (\w+) \{", text):
        at = text[: one.end()].count(" ")
        if re.search(r"\boperator \( \) \(", " ".join(words[at : _closing(words, at)])):
            found.add(one[1])
    return found


def _closing(words: list[str], opening: int) -> int:
    """Where the bracket ends that opens there; the last word if nowhere."""
    depth = 0
    for at in range(opening, len(words)):
        depth += (words[at] in "([{") - (words[at] in ")]}")
        if depth == 0:
            return at
    return len(words) - 1


def _begins_a_member(words: list[str], at: int, own_types: set[str]) -> bool:
    """Whether this name begins one of the members in a constructor's list: Acc(float x) : v(x), w{} {..}."""
    end = _closing(words, at + 1)
    if words[end + 1 : end + 2] not in ([","], ["{"]):
        return False
    before = at - 1
    while before > 0 and words[before] == "," and words[before - 1] in ")}":
        before = _partner(words, before - 1, "(" if words[before - 1] == ")" else "{") - 2
    if words[before - 1 : before + 1] != [")", ":"]:
        return False
    constructor = _partner(words, before - 1, "(") - 1
    return constructor > 0 and words[constructor] in own_types and words[constructor - 1] in (
        "{", "}", ";", ":", "__device__", "__forceinline__", "constexpr", "inline", "explicit")


def _calls_no_name(words: list[str], at: int, types: set[str], called: set[str]) -> bool:
    """Whether this ( may begin the arguments of whatever stands in brackets before it: an address, say. Not those of
    if (..) and its like, and not what (float) converts."""
    if words[at - 1 : at] == ["]"]:
        before = words[max(0, _partner(words, at - 1, "[") - 1)]  # of a lambda's parameters no name, but for these
        return before in ("]", ")") or _NAME.fullmatch(before) is not None and before not in ("return", "auto",
                                                                                              "operator")
    if words[at - 1 : at] != [")"]:
        return False
    opening = _partner(words, at - 1, "(")
    inside = words[opening + 1 : at - 1]
    converts = bool(inside) and all(word in types | {"*", "&", "unsigned", "const"} for word in inside) \
        and inside[0] not in "*&"
    if words[opening - 1 : opening] and words[opening - 1] in called - {"auto"}:
        return False  # Max()(a, b)
    return not converts and words[opening - 1 : opening] not in (["if"], ["for"], ["while"], ["switch"], ["alignas"],
                                                                 ["__launch_bounds__"], ["__align__"], ["operator"])


def _is_a_function(words: list[str], at: int) -> bool:
    """Whether the name is declared with parameters and a body, or is a lambda's: else what stands in brackets is its
    first value."""
    if words[at + 1 : at + 3] == ["=", "["]:
        return True
    if words[at + 1 : at + 2] != ["("]:
        return False
    end = at + 2 + _closing(words[at + 1 : at + _MOST_WORDS], 0)
    while words[end : end + 1] in (["const"], ["noexcept"]):
        end += 1
    return words[end : end + 1] == ["{"]


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


def _before_pointers(words: list[str], at: int) -> int:
    before = at - 1
    while before >= 0 and words[before] in ("*", "&"):
        before -= 1
    return before


def _declared(words: list[str], at: int, types: set[str]) -> bool:
    """Whether a variable or function of this name is declared here: a type stands before it, perhaps with * or &."""
    before = _before_pointers(words, at)
    if before < 0:
        return False
    if words[before] in types or words[before] == "using":
        return True
    if before > 1 and words[before - 1] == "::" and words[before - 2] in types and _NAME.fullmatch(words[before]):
        return True  # Problem::Span span
    if words[before] == ">":
        return _template_of(words, before) in types
    opening = _opening(words, at)
    if words[opening] == "{" and _begins_an_enum(words, opening) and before == at - 1 and words[before] in "{,":
        return True
    if words[opening] == "[" and words[at + 1 : at + 2] == ["="] and words[before] in "[,":
        return not _NAME.fullmatch(words[opening - 1]) and words[opening - 1] not in ")]"  # [base = lane]: no subscript
    if words[before] == "(" and words[at - 1] in "&*" and words[at + 1 : at + 3] == [")", "["]:
        return words[before - 1] in types  # float (&x)[4], float (*x)[4]
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
            return (words[at] in "({" and _begins_with_a_type(words, at + 1, types)
                    and (words[at] == "{" or words[at - 1] in ("for", "if")))
        if depth == 0 and words[at] in ";}" and at < comma - 1:
            return _begins_with_a_type(words, at + 1, types)
    return comma < _MOST_WORDS and _begins_with_a_type(words, 0, types)


def _begins_with_a_type(words: list[str], at: int, types: set[str]) -> bool:
    """Perhaps after words such as __shared__ and static."""
    while at < len(words) and words[at] in ("__shared__", "static", "const", "constexpr", "volatile"):
        at += 1
    return at < len(words) and words[at] in types
