"""How the small functions that compiled loops are made of are compiled: as a part of the loops, and nothing else.

Numba optimizes every function twice over and makes machine code of it, also of one that is inlined wherever it is
called, and of its two entries from Python and from C; that is most of the time that a loop of ten such functions takes
to compile. What is compiled here stays LLVM's intermediate code, optimized once (what is inlined as it was written
makes some loops five times as slow), until what calls it is optimized as a whole. It cannot be called from Python.
"""

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering


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
