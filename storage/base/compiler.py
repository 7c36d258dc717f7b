"""How Numba compiles our functions: it looks up each thing once, and small functions become a part of loops.

Numba types every operation of a function by asking all that may implement it (for `<` some twenty, twice each), and
compares all options of the function at each question; it takes the time of each call of LLVM. What it has found is kept
here, and no time taken: a quarter of the time to compile (`engine/decisions/compiling.md`).

Numba optimizes every function twice over and makes machine code of it, also of one that is inlined wherever it is
called, and of its two entries from Python and from C; that is most of the time that a loop of ten such functions takes
to compile. What is compiled here stays LLVM's intermediate code, optimized once (what is inlined as it was written
makes some loops five times as slow), until what calls it is optimized as a whole. It cannot be called from Python.
"""

from contextlib import AbstractContextManager
from typing import Any

from llvmlite.binding import ffi
from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering
from numba.core.types.functions import BaseFunction

_OWN_ENTRY = "no_cpython_wrapper", "no_cfunc_wrapper", "no_compile", "release_gil"
"""Options of a function itself, which what it calls does not take over."""


class _KnownFlags(Flags):  # type: ignore[misc]
    """The options of functions that are being compiled: one object for the same values. A copy can be changed."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _FLAGS_HASH

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, _KnownFlags) else bool(super().__eq__(other))

    def copy(self) -> Flags:
        """Flags of their own."""
        return Flags(self)


_FLAGS_HASH = hash(Flags())
"""Of all flags, in Numba too."""
_known: dict[str, _KnownFlags] = {}


def _known_flags(flags: Any) -> Any:
    """The one object that has the values of these flags, less `_OWN_ENTRY`; those of a GPU as they are."""
    if type(flags) is not Flags:
        return flags
    found = _KnownFlags(flags)
    for name in _OWN_ENTRY:
        found.discard(name)
    return _known.setdefault(found.summary(), found)


def look_up_once() -> None:
    """Let Numba keep what it finds for the types of arguments, until the process ends; called once.

    For processes that do nothing but compile for us (`storage/companion/server.py`): it is Numba's own work, and that
    of others in a process, that changes.
    """
    enter, call_type = ConfigStack.enter, BaseFunction.get_call_type
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def enter_known(self: Any, flags: Any) -> AbstractContextManager[None]:
        return enter(self, _known_flags(flags))  # type: ignore[no-any-return]

    def call_type_once(self: Any, context: Any, args: Any, kws: Any) -> Any:
        flags = ConfigStack.top_or_none()
        if kws or not isinstance(flags, _KnownFlags):
            return call_type(self, context, args, kws)
        key = id(self), id(context), id(flags), tuple(args)
        if key not in found:
            signature: Any = call_type(self, context, args, kws)
            found[key] = signature, self._impl_keys[signature.args], self, context  # which live as long as their ids
        signature, self._impl_keys[signature.args], *_ = found[key]
        return signature

    ConfigStack.enter, BaseFunction.get_call_type = enter_known, call_type_once  # type: ignore[method-assign]
    for calls in [*ffi.lib._lock._cblist]:  # by which Numba takes the time that LLVM takes
        ffi.unregister_lock_callback(*calls)


class _IntermediateCode(JITCodeLibrary):  # type: ignore[misc]
    """Code that others link in, and of which no machine code is made."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager(cost="cheap", slp_vectorize=False, loop_vectorize=False)
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _SeparateCode(_IntermediateCode):
    """The same, of which only each function by itself has been optimized."""

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel, which inlines and optimizes it."""


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerOnly(NativeLowering):  # type: ignore[misc]
    """Makes intermediate code, and a function object that only stands for it in Numba's tables."""

    _name = "native_lowering_only"

    def run_pass(self, state: Any) -> bool:
        """Lower a function that has been typed."""
        target = state.targetctx
        state.library = state.pipeline.code(target.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        lowered, name = state["cr"], state.func_id.func_name
        stands_for = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), name, f"inlined: {name}", 0, lowered.env, (state.library,)
        )
        target.insert_user_function(stands_for, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=stands_for, env=lowered.env)
        return True


class InlinedCompiler(CompilerBase):  # type: ignore[misc]
    """The `pipeline_class` of a function that is inlined where it is called (`forceinline=True`)."""

    code = _IntermediateCode

    def define_pipelines(self) -> list[PassManager]:
        """Numba's own passes but for the last."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state, "inlined")
        manager = PassManager("inlined")
        for kind, description in passes.passes:
            manager.add_pass(_LowerOnly if kind is NativeLowering else kind, description)
        manager.finalize()
        return [manager]


class DistinctArraysCompiler(InlinedCompiler):
    """The same for a function whose array arguments share no memory where one is written: loops over them vectorize."""

    def define_pipelines(self) -> list[PassManager]:
        """Tell LLVM, as Numba does for the bodies of `prange`."""
        self.state.flags.noalias = True
        return super().define_pipelines()


class SeparateCompiler(InlinedCompiler):
    """The same, compiled sooner: what it calls is inlined once, in the kernel (`engine/decisions/compiling.md`)."""

    code = _SeparateCode
