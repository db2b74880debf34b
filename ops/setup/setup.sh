#!/bin/sh
# Makes everything the other commands need, and nothing twice:
#   .venv            the developer's Python, from requirements.txt
#   .venv-emulator   the AWS emulator, from ops/emulator/requirements.txt
#   node_modules     the CDK command line and AWS's DynamoDB engine for tests, from package-lock.json
#
# Each room carries a stamp: the hash of the files that pin it, and the place it was made in (a virtual
# environment cannot be moved). A stamp that matches means there is nothing to do. The stamp is written
# last, so an interrupted set-up starts that room afresh.
#
# Environment: PYTHON  the interpreter to use (default: the first of python3, python3.13, python3.12,
#                      python3.11 that is new enough).
set -eu
cd "$(dirname "$0")/../.."
root=$(pwd)

# A caller's own Python or pip habits must not leak into these environments.
unset PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV VIRTUAL_ENV || true
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

fail() {
    printf '\nsetup: %s\n' "$1" >&2
    exit 1
}

if command -v sha256sum >/dev/null 2>&1; then
    sha() { cat "$@" | sha256sum | cut -d' ' -f1; }
elif command -v shasum >/dev/null 2>&1; then
    sha() { cat "$@" | shasum -a 256 | cut -d' ' -f1; }
else
    fail "neither sha256sum nor shasum is on the PATH; install GNU coreutils or perl."
fi

# ---------------------------------------------------------------------------------------- interpreter
new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        command -v "$PYTHON" >/dev/null 2>&1 || fail "PYTHON=$PYTHON is not on the PATH."
        new_enough "$PYTHON" || fail "PYTHON=$PYTHON is Python $(version_of "$PYTHON" || echo '(does not start)'); Penstock needs 3.11 or later."
        echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 && new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or later was found (python3 is $(version_of python3 || echo missing)).
       Install one, or name it: make setup PYTHON=/path/to/python3.12"
}

# The same stamp for both environments: pins, place and, when PYTHON is named, its version.
stamp_for() { # venv, pin files...
    venv=$1
    shift
    made_by=any
    if [ -n "${PYTHON:-}" ] && [ -x "$venv/bin/python" ]; then
        [ "$(version_of "$PYTHON")" = "$(version_of "$venv/bin/python")" ] || made_by=another
    fi
    printf '%s %s %s\n' "$(sha "$@")" "$root/$venv" "$made_by"
}

is_fresh() { # stamp file, wanted stamp
    [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]
}

# ---------------------------------------------------------------------------------------------- rooms
logs=$(mktemp -d "${TMPDIR:-/tmp}/penstock-setup.XXXXXX")
trap 'rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

quietly() { # log name, command...
    log=$logs/$1
    shift
    "$@" >>"$log" 2>&1 || {
        {
            printf '\nsetup: this failed: %s\n\n' "$*"
            cat "$log"
        } >&2
        return 1
    }
}

make_venv() { # venv, requirements, log name
    rm -rf "$1"
    quietly "$3" "$python" -m venv "$1" || {
        echo "setup: the virtual environment could not be made (on Debian and Ubuntu: install python3-venv)." >&2
        return 1
    }
    # The lock is complete and hashed, so the resolver has nothing to do; modules compile on first use.
    quietly "$3" "$1/bin/python" -m pip install -q --no-deps --no-compile --require-hashes \
        --only-binary :all: -r "$2" || return 1
}

main_venv() {
    make_venv .venv requirements.txt venv || return 1
    printf '%s\n' "$(stamp_for .venv $main_pins)" >.venv/.stamp
    echo "  .venv ready: Python $(version_of .venv/bin/python)"
}

# The project itself, editable: the `penstock` command and its import path. Apart from the packages, so that
# a change of a lint rule in pyproject.toml costs two seconds and not a minute. The build tool is pinned and
# already there, so this asks no network.
project() {
    quietly venv .venv/bin/python -m pip install -q --no-deps --no-build-isolation --no-index -e . || return 1
    sha $project_pins >.venv/.stamp-project
}

emulator_venv() {
    make_venv .venv-emulator ops/emulator/requirements.txt emulator || return 1
    printf '%s\n' "$(stamp_for .venv-emulator $emulator_pins)" >.venv-emulator/.stamp
    echo "  .venv-emulator ready"
}

cdk_cli() {
    quietly npm npm ci --silent || return 1
    printf '%s\n' "$(sha $npm_pins)" >node_modules/.stamp
    echo "  node_modules ready: CDK command line, DynamoDB engine"
}

main_pins="requirements.txt"
project_pins="pyproject.toml"
emulator_pins="ops/emulator/requirements.txt"
npm_pins="package.json package-lock.json"

need_main= need_project= need_emulator= need_npm=
is_fresh .venv/.stamp "$(stamp_for .venv $main_pins)" || need_main=1
is_fresh .venv-emulator/.stamp "$(stamp_for .venv-emulator $emulator_pins)" || need_emulator=1
is_fresh .venv/.stamp-project "$(sha $project_pins)" || need_project=1
is_fresh node_modules/.stamp "$(sha $npm_pins)" || need_npm=1
[ -z "$need_main" ] || need_project=1
[ -n "$need_main$need_project$need_emulator$need_npm" ] || exit 0

# Ask for everything that is missing before the first minute is spent.
if [ -n "$need_main$need_emulator" ]; then
    python=$(find_python)
fi
if [ -n "$need_npm" ]; then
    command -v node >/dev/null 2>&1 || fail "Node.js is missing; Penstock needs Node 20 or later for the CDK command line."
    command -v npm >/dev/null 2>&1 || fail "npm is missing; it comes with Node.js (on Debian and Ubuntu: install npm)."
    node_version=$(node -p process.versions.node)
    [ "${node_version%%.*}" -ge 20 ] || fail "Node.js is $node_version; Penstock needs Node 20 or later."
fi

[ -z "$need_main$need_emulator$need_npm" ] || echo "Setting up (a minute or two, once):"
jobs=
if [ -n "$need_npm" ]; then cdk_cli & jobs="$jobs $!"; fi
if [ -n "$need_emulator" ]; then emulator_venv & jobs="$jobs $!"; fi
if [ -n "$need_main" ]; then main_venv & jobs="$jobs $!"; fi
failed=
for job in $jobs; do wait "$job" || failed=1; done
[ -n "$failed" ] || [ -z "$need_project" ] || project || failed=1
[ -z "$failed" ] || fail "not finished; nothing was stamped for what failed, so the next try starts it again."
