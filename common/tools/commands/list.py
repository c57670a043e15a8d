"""the chapters, what each adds, what is supported here"""

from tools.machine import bold, build, chapters, say, system, table


def add_arguments(parser) -> None:
    pass


def run(_) -> int:
    directories = [build.directory(preset) for preset in ("cpu", "cuda")]
    rows = [["chapter", "what it adds"]]
    for chapter in chapters.all_chapters():
        description = chapters.describe(chapter, directories)
        rows.append([chapter.name, description.idea if description else chapters.title(chapter)])
        if description and len(description.rungs) > 1:
            rows += [[f"  {rung['name']}", rung["idea"]] for rung in description.rungs]
    say(table(rows, left_columns=2))
    say()
    choice = system.choose_preset(None)
    say(bold("here"))
    say(f"  preset {choice.preset}: {choice.why}")
    missing = system.missing_packages(choice.preset)
    if missing:
        say(f"  missing packages, which run and test install: {' '.join(package.name for package in missing)}")
    return 0
