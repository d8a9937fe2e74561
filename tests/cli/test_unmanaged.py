"""Unmanaged objects that grant access: what can be done about each."""

from tests.cli_runner import CliRunner


def test_what_no_manifest_can_declare_is_named(cli_runner: CliRunner) -> None:
    def service(*names: str) -> None:
        tokens = [{"description": name, "id": number, "owner": "ada"} for number, name in enumerate(names, 70)]
        cli_runner.service(trigger_tokens=tokens)

    service("nightly", "nightly", "deploy", "", "  ")
    cli_runner.project("{trigger_tokens: {}}")
    grants = (
        "5 unmanaged objects grant access: 5 in trigger_tokens; declare them, or write prune: [trigger_tokens] to delete "
        'them; 2 have the name of another (such as trigger token "nightly" of project acme/api) and 2 have a blank name '
        '(such as trigger token "" of project acme/api), and cannot be declared: rename or delete such objects on the '
        "service"
    )
    done = cli_runner("plan --report markdown=plan.md")
    assert (done.code, done.out.splitlines()[:-1]) == (0, [grants])
    assert "and 2 have a blank name" in (cli_runner.folder / "plan.md").read_text()
    service("nightly", "nightly")
    assert (
        "2 in trigger_tokens; write prune: [trigger_tokens] to delete them; 2 have the name" in cli_runner("plan").out
    )
    service("", "deploy")
    assert (
        cli_runner("plan")
        .out.splitlines()[0]
        .endswith(
            'to delete them; 1 has a blank name (such as trigger token "" of project acme/api), and cannot be declared: '
            "rename or delete such objects on the service"
        )
    )
    service("deploy")
    assert (
        cli_runner("plan").out.splitlines()[0].endswith("; declare it, or write prune: [trigger_tokens] to delete it")
    )
