"""What every command has in common: `--stage` and `--json` before or after its name, and errors as sentences."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, cast, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ops.cli.completion import OFFERED
from ops.cli.show import Output
from ops.cli.streams import Unwritten, answering
from ops.cli.trouble import Problem, problem_of
from shared.core.errors import BadInput

if TYPE_CHECKING:
    from ops.cli.stage import Stage

P = ParamSpec("P")

TRACEBACK = "PENSTOCK_TRACEBACK"
"""Variable that shows the whole of an unexpected error; it may hold what a customer wrote."""

ORDER = ("local", "enqueue", "jobs", "dlq", "redrive", "status", "runs", "control", "audit", "doctor", "cost", "new")

StageOption = Annotated[
    str | None,
    typer.Option(
        "--stage",
        "-s",
        metavar="STAGE",
        help="local, dev, stage or prod. Default: PENSTOCK_STAGE, else local if a local stack runs.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.", show_default=False)]

_BELOW_0 = re.compile(r"-\d+")

_UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a command was asked with, beside its own options."""

    stage_name: str | None
    out: Output

    def stage(self) -> Stage:
        """The stage that is meant, its stores ready to be used."""
        from ops.cli.stage import Stage

        return Stage.open(self.stage_name)


class Root(TyperGroup):
    """`penstock` itself: usage errors end with 2, in JSON when that was asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order a newcomer meets them; what is not in it comes last."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        code: Any
        try:
            with answering():
                try:
                    code = super().main(
                        given, prog_name or "penstock", complete_var, False, windows_expand_args, **extra
                    )
                except _UsageError as error:
                    code = 2
                    _tell_usage(error, as_json="--json" in given)
                except typer.Abort:
                    code = 1
        except Unwritten as exc:
            code = 1
            if not exc.gone and sys.stderr is not None:
                with contextlib.suppress(OSError):
                    print(exc.sentence, file=sys.stderr, flush=True)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


class Words(TyperCommand):
    """A command: a number below 0 is an argument, and refused by its meaning, not taken for an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As written."""
        ctx.ignore_unknown_options = any(_BELOW_0.fullmatch(word) for word in args)
        return list(super().parse_args(ctx, args))


class Listing(TyperGroup):
    """Commands under one name of which `list` is meant where none is named: `penstock runs rewrite`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """With `list` before it, unless a command is named or help is asked for."""
        named = any(word in self.commands for word in args) or args in (["--help"], ["-h"])
        return list(super().parse_args(ctx, args if named else ["list", *args]))


def group(help: str, *, lists: bool = False) -> typer.Typer:
    """Commands under one name; `--stage` and `--json` may stand before theirs. `lists`: without one, `list`."""
    app = typer.Typer(
        cls=Listing if lists else TyperGroup,
        help=help,
        no_args_is_help=not lists,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_remember)
    return app


def root(help: str) -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        cls=Root,
        help=help,
        no_args_is_help=True,
        rich_markup_mode=None,
        # Pretty tracebacks print local variables, and those may hold what a customer wrote.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_remember)
    return app


def command(
    app: typer.Typer, name: str, *, examples: Sequence[str] = ()
) -> Callable[[Callable[Concatenate[Asked, P], None]], Callable[Concatenate[Asked, P], None]]:
    """Register a function as a command; its first parameter is what was asked, the rest are its own options."""

    def register(function: Callable[Concatenate[Asked, P], None]) -> Callable[Concatenate[Asked, P], None]:
        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        for one in own:
            # By the word's name: a lane is a lane in every command.
            hints[one.name].__metadata__[0].autocompletion = OFFERED.get(one.name)

        def run(ctx: typer.Context, *, stage: str | None, json: bool, **options: Any) -> None:
            before = ctx.obj if isinstance(ctx.obj, dict) else {}
            asked = Asked(stage_name=stage or before.get("stage"), out=Output(json=json or bool(before.get("json"))))

            def work() -> None:
                for one in own:
                    if one.default is None:
                        _check_given(one.name, hints[one.name], options[one.name])
                function(asked, **options)  # type: ignore[call-arg]

            _tried(asked.out, work)

        parameters = [
            _parameter("ctx", typer.Context),
            *(_parameter(one.name, hints[one.name], one.default) for one in own),
            _parameter("stage", StageOption, None),
            _parameter("json", JsonOption, False),
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        app.command(name, cls=Words, help=_help(function, examples))(run)
        return function

    return register


def _remember(ctx: typer.Context, stage: StageOption = None, json: JsonOption = False) -> None:
    before = ctx.obj if isinstance(ctx.obj, dict) else {}
    ctx.obj = {"stage": stage or before.get("stage"), "json": json or bool(before.get("json"))}


def _tried(out: Output, work: Callable[[], None]) -> None:
    """Run a command; whatever it raises becomes a sentence and exit code 1."""
    out.begin()
    try:
        work()
    except (typer.Exit, typer.Abort, _UsageError, Unwritten):
        raise
    except Exception as exc:
        if os.environ.get(TRACEBACK):
            raise
        out.fail(problem_of(exc))
        raise typer.Exit(1) from None
    finally:
        out.quiet()


def _check_given(name: str, hint: Any, value: object) -> None:
    """What may be left out is not given empty: a variable that is not set would choose nothing, or everything."""
    texts = value if isinstance(value, list) else [value]
    if any(isinstance(text, str) and not text.strip() for text in texts):
        told = hint.__metadata__[0]
        # The first of an annotated option's names stands where its default would.
        names = [one for one in (told.default, *(told.param_decls or ())) if isinstance(one, str)]
        given = max(names or [name], key=len).strip("-")
        raise BadInput(given, "is empty: give a value, or leave it out")


def _parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _help(function: Callable[..., Any], examples: Sequence[str]) -> str:
    text = inspect.cleandoc(function.__doc__ or "")
    if examples:
        # \b keeps the lines as they are.
        text += "\n\n\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
    return text


def _tell_usage(error: Exception, *, as_json: bool) -> None:
    shown = cast(Any, error)
    if not as_json:
        shown.show()
        return
    # Asked without a command, a group's error is its whole help.
    alone = type(error).__name__ == "NoArgsIsHelpError"
    message = "a command is missing" if alone else str(shown.format_message())
    Output(json=True).fail(Problem(code="usage", field="", problem=message))
