"""The command line: the same answers as the pages, as text or JSON.

Commands are loaded on first use, so that a cold `check` imports only what it needs.
"""

from importlib import import_module

import click

COMMANDS = {
    "check": "nvdash.cli.check",
    "memory": "nvdash.cli.memory",
    "matrix": "nvdash.cli.matrix",
    "read": "nvdash.cli.read",
    "submit": "nvdash.cli.submit",
    "withdraw": "nvdash.cli.withdraw",
    "reinstate": "nvdash.cli.reinstate",
    "runs": "nvdash.cli.runs",
    "export": "nvdash.cli.export",
    "import": "nvdash.cli.import_",
    "compare": "nvdash.cli.compare",
    "plan": "nvdash.cli.plan",
    "smoke": "nvdash.cli.smoke",
    "store": "nvdash.cli.store",
    "doctor": "nvdash.cli.doctor",
}


class LazyGroup(click.Group):
    """Imports a command's module only when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        command = import_module(module).command if module else None
        return command if isinstance(command, click.Command) else None

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a wrong flag is answered in JSON too where JSON was asked for."""
        wants_json = "--json" in ctx.args
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if wants_json:
                from nvdash.cli.output import usage_object

                click.echo(usage_object(error))
            raise


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Does it fit, does it run, what was measured: NVFP4 weights and KV cache, apart."""
