"""Mail: what a real server receives, and which error each kind of failure causes."""

from __future__ import annotations

import socket
from email.message import EmailMessage
from pathlib import Path

import pytest

from rowcall.base.endpoints import Mailbox, SmtpServer
from rowcall.base.errors import GatewayError, OutcomeUnknown, Refused, Unavailable
from rowcall.base.files import Files
from rowcall_worker.gateways import Attachment
from rowcall_worker.gateways.mail import Mail, MailFolder
from rowcall_worker.gateways.smtp import SmtpMail
from tests.support.servers.authority import Authority
from tests.support.servers.mail import DRIP, DROP, LATE, LATE_SECONDS, SILENT, MailServer, mail_server

SENDER = Mailbox("reports@example.com", "Rowcall")
PNG = b"\x89PNG\r\n\x1a\n and the rest of a picture"

# LONG is enough for any server that answers, even on a busy machine; SHORT is for servers that never answer.
LONG, SHORT = 60.0, 1.0


def gateway(server: MailServer, how: str = "?starttls=never", user: str = "", timeout: float = LONG) -> SmtpMail:
    """Return a gateway to this server."""
    scheme = "smtps" if how == "smtps" else "smtp"
    query = "" if how == "smtps" else how
    return SmtpMail(SmtpServer.parse(f"{scheme}://{user}{server.host}:{server.port}{query}"), SENDER, timeout=timeout)


def send(mail: Mail, to: str = "ada@example.com", message_id: str = "<welcome-1@example.com>", text: str = "Hi") -> str:
    """Send a small email."""
    return mail.send(to=to, subject="Hello", text=text, message_id=message_id)


def parts(message: EmailMessage) -> list[str]:
    """Return the types of all parts, in their nesting."""
    return [part.get_content_type() for part in message.walk()]


def test_a_mail_arrives_whole_and_the_servers_name_for_it_comes_back() -> None:
    with mail_server() as server:
        reference = send(gateway(server))
    (mail,) = server.mails
    assert (mail.sender, mail.recipients) == ("reports@example.com", ["ada@example.com"])
    assert mail.message["From"] == "Rowcall <reports@example.com>"
    assert mail.message["To"] == "ada@example.com"
    assert mail.message["Subject"] == "Hello"
    assert mail.message["Message-ID"] == "<welcome-1@example.com>"
    assert mail.message["Auto-Submitted"] == "auto-generated"
    assert mail.message["Date"].datetime.tzinfo is not None
    assert mail.message.get_content() == "Hi\r\n"
    assert reference == "2.0.0 Ok: queued as 0000000001 <welcome-1@example.com>"


def test_html_pictures_and_attachments_stand_where_mail_programs_look_for_them() -> None:
    with mail_server() as server:
        gateway(server).send(
            to="ada@example.com",
            name="Ada Lövelace",
            subject="Your week: 30 € and more",
            text="See the picture",
            html='<p>Größe <img src="cid:chart"></p>',
            pictures={"chart": PNG},
            attachments=[Attachment("Bericht für Ada.pdf", b"%PDF-1.7 \x00\xff")],
            message_id="<report-1@example.com>",
        )
    message = server.mails[0].message
    assert parts(message) == [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "application/pdf",
    ]
    assert message["Subject"] == "Your week: 30 € and more"
    assert message["To"].addresses[0].display_name == "Ada Lövelace"
    _, _, text, _, html, picture, attachment = message.walk()
    assert isinstance(text, EmailMessage)
    assert text.get_content() == "See the picture\r\n"
    assert isinstance(html, EmailMessage)
    assert html.get_content() == '<p>Größe <img src="cid:chart"></p>\r\n'
    assert (picture["Content-ID"], picture.get_content_disposition()) == ("<chart>", "inline")
    assert picture.get_payload(decode=True) == PNG
    assert (attachment.get_filename(), attachment.get_content_disposition()) == ("Bericht für Ada.pdf", "attachment")
    assert attachment.get_payload(decode=True) == b"%PDF-1.7 \x00\xff"


def test_a_line_that_is_only_a_dot_does_not_end_the_mail() -> None:
    with mail_server() as server:
        send(gateway(server), text="one\n.\nQUIT\n..two\n")
    assert server.mails[0].message.get_content() == "one\r\n.\r\nQUIT\r\n..two\r\n"


def test_nothing_is_sent_before_starttls_has_proved_whose_server_it_is(trusted: Authority) -> None:
    with mail_server(context=trusted.server_context("127.0.0.1")) as server:
        send(gateway(server, how=""))
    assert server.mails[0].encrypted


def test_what_was_said_before_the_encryption_is_forgotten(trusted: Authority) -> None:
    with mail_server(context=trusted.server_context("127.0.0.1")) as server:
        server.misbehave("STARTTLS", "220 Ready\r\n550 5.7.1 said by somebody in between")
        send(gateway(server, how=""))
    assert server.mails[0].encrypted


def test_login_happens_inside_of_the_encryption(trusted: Authority) -> None:
    with mail_server(context=trusted.server_context("127.0.0.1"), login=("ada", "p@ss/word")) as server:
        send(gateway(server, how="?starttls=required", user="ada:p%40ss%2Fword@"))
    assert (server.mails[0].user, server.mails[0].encrypted) == ("ada", True)


def test_a_server_may_be_encrypted_from_the_first_byte(trusted: Authority) -> None:
    with mail_server(context=trusted.server_context("127.0.0.1"), implicit=True, login=("ada", "secret")) as server:
        send(gateway(server, how="smtps", user="ada:secret@"))
    assert (server.mails[0].user, server.mails[0].encrypted) == ("ada", True)


@pytest.mark.parametrize("how", ["", "smtps"])
def test_a_server_that_nobody_vouches_for_gets_nothing(authority: Authority, how: str) -> None:
    context = authority.server_context("127.0.0.1")
    with mail_server(context=context, implicit=how == "smtps") as server:
        mail = gateway(server, how=how)
        with pytest.raises(Unavailable, match="certificate verify failed"):
            send(mail)
        assert server.mails == []


def test_a_certificate_for_another_host_is_none(trusted: Authority) -> None:
    with mail_server(context=trusted.server_context("mail.example.com")) as server:
        mail = gateway(server, how="")
        with pytest.raises(Unavailable, match="certificate is not valid for '127.0.0.1'"):
            send(mail)


def test_a_server_without_starttls_gets_nothing_unless_that_is_allowed() -> None:
    with mail_server() as server:
        with pytest.raises(Unavailable, match="127.0.0.1 offers no STARTTLS"):
            send(gateway(server, how=""))
        with pytest.raises(Unavailable, match="offers no STARTTLS"):
            send(gateway(server, how="", user="ada:secret@"))
        assert server.mails == []


def test_a_wrong_password_is_tried_again_because_the_mail_is_not_to_blame(trusted: Authority) -> None:
    with mail_server(context=trusted.server_context("127.0.0.1"), login=("ada", "secret")) as server:
        with pytest.raises(Unavailable, match="refused the user and password in ROWCALL_SMTP_URL: 535 5.7.8") as error:
            send(gateway(server, how="", user="ada:hush@"))
        assert "hush" not in str(error.value)
        server.misbehave("MAIL", "530 5.7.0 Authentication required")
        with pytest.raises(Unavailable, match="530 5.7.0"):
            send(gateway(server, how=""))


def test_a_server_that_is_not_there_gets_another_chance() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match="the mail server 127.0.0.1 could not be used: .*refused"):
        send(gateway(MailServer(port=port)))
    nowhere = SmtpMail(SmtpServer.parse("smtp://mail.invalid"), SENDER, timeout=LONG)
    with pytest.raises(Unavailable, match="the mail server mail.invalid could not be used"):
        send(nowhere)


BEFORE_THE_DOT = ["greeting", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "text"]


@pytest.mark.parametrize("step", BEFORE_THE_DOT)
def test_until_the_final_dot_a_lost_connection_means_that_nothing_was_sent(trusted: Authority, step: str) -> None:
    # More than any buffer on the way holds, so that the client notices when the server closes in the middle.
    text = "x" * 70 + "\n"
    with mail_server(context=trusted.server_context("127.0.0.1"), login=("ada", "secret")) as server:
        server.misbehave(step, DROP)
        with pytest.raises(Unavailable) as error:
            send(gateway(server, how="", user="ada:secret@"), text=text * 200_000 if step == "text" else text)
        assert server.plans == {}
        assert (error.value.acted, error.value.permanent, server.mails) == ("no", False, [])
        send(gateway(server, how="", user="ada:secret@"))
        assert len(server.mails) == 1


@pytest.mark.parametrize("how", [SILENT, DRIP])
@pytest.mark.parametrize("step", ["greeting", "DATA"])
def test_until_the_final_dot_running_out_of_time_means_that_nothing_was_sent(step: str, how: str) -> None:
    with mail_server() as server:
        server.misbehave(step, how)
        with pytest.raises(Unavailable, match="timed out|took longer than 1 seconds"):
            send(gateway(server, timeout=SHORT))
        assert (server.plans, server.mails) == ({}, [])


@pytest.mark.parametrize("how", [DROP, SILENT, DRIP])
def test_from_the_final_dot_on_nobody_knows_without_an_answer(how: str) -> None:
    with mail_server() as server:
        server.misbehave("dot", how)
        with pytest.raises(OutcomeUnknown, match="127.0.0.1 has the email, but did not answer") as error:
            send(gateway(server, timeout=LONG if how == DROP else SHORT))
        assert (error.value.acted, error.value.permanent) == ("maybe", False)
        # In fact, this server accepted it.
        assert len(server.mails) == 1


def test_a_server_may_take_longer_over_the_whole_mail_than_over_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowcall_worker.gateways.smtp.STEP_SECONDS", LATE_SECONDS / 2)
    with mail_server() as server:
        server.misbehave("MAIL", LATE)
        with pytest.raises(Unavailable, match="timed out"):
            send(gateway(server))
        server.misbehave("dot", LATE)
        assert "queued" in send(gateway(server))


@pytest.mark.parametrize("nonsense", ["hello there", "354 go on", "999 what", "25O Ok"])
def test_an_answer_to_the_final_dot_that_says_nothing_is_no_answer(nonsense: str) -> None:
    with mail_server() as server:
        server.misbehave("dot", nonsense)
        with pytest.raises(OutcomeUnknown):
            send(gateway(server))


@pytest.mark.parametrize("step", ["greeting", "EHLO", "STARTTLS", "MAIL", "RCPT", "DATA", "dot"])
def test_a_servers_not_now_is_tried_again(trusted: Authority, step: str) -> None:
    with mail_server(context=trusted.server_context("127.0.0.1")) as server:
        server.misbehave(step, "451 4.3.0 Try again later")
        with pytest.raises(Unavailable, match="with 451 4.3.0 Try again later") as error:
            send(gateway(server, how=""))
        assert (error.value.acted, server.mails) == ("no", [])


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ("greeting", Unavailable),
        ("EHLO", Unavailable),
        ("STARTTLS", Unavailable),
        ("MAIL", Refused),
        ("RCPT", Refused),
        ("DATA", Refused),
        ("dot", Refused),
    ],
)
def test_a_servers_never_is_final_where_it_speaks_of_this_mail(
    trusted: Authority, step: str, kind: type[GatewayError]
) -> None:
    with mail_server(context=trusted.server_context("127.0.0.1")) as server:
        server.misbehave(step, "550 5.1.1 No such user here")
        with pytest.raises(kind, match="with 550 5.1.1 No such user here") as error:
            send(gateway(server, how=""))
        assert (error.value.acted, error.value.permanent, server.mails) == ("no", kind is Refused, [])


@pytest.mark.parametrize("how", [DROP, SILENT, DRIP, "421 4.3.0 Bye", "550 No"])
def test_a_mail_that_was_taken_stays_so_however_the_server_says_goodbye(how: str) -> None:
    with mail_server() as server:
        server.misbehave("QUIT", how)
        assert "queued" in send(gateway(server))
        assert len(server.mails) == 1


def test_an_address_in_any_script_is_sent_to_a_server_that_knows_how() -> None:
    with mail_server() as server:
        send(gateway(server), to="дора@bücher.example")
    assert server.mails[0].recipients == ["дора@xn--bcher-kva.example"]
    assert "To: дора@xn--bcher-kva.example\r\n".encode() in server.mails[0].content


def test_an_address_in_another_script_is_refused_by_name_where_the_server_does_not_know_how() -> None:
    with mail_server(international=False) as server:
        with pytest.raises(Refused, match="does not accept an address like дора@example.com .SMTPUTF8."):
            send(gateway(server), to="дора@example.com")
        send(gateway(server), to="dora@bücher.example")
    assert server.mails[0].recipients == ["dora@xn--bcher-kva.example"]


def test_without_a_mail_server_the_same_mail_is_the_same_file(tmp_path: Path) -> None:
    mail = MailFolder(Files(tmp_path / "mail"), SENDER)
    first = send(mail, message_id="<welcome/1@example.com>")
    assert send(mail, message_id="<welcome/1@example.com>", text="Hi again") == first
    other = send(mail, message_id="<welcome_1@example.com>")
    assert {entry.name for entry in (tmp_path / "mail").iterdir()} == {first, other}
    assert first.startswith("mail_welcome_1@example.com-")
    assert first.endswith(".eml")
    assert b"Hi again" in (tmp_path / "mail" / first).read_bytes()
