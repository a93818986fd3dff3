"""Addresses of external services are parsed strictly, so that no part of the code reads one differently."""

from __future__ import annotations

import base64

import pytest

from rowcall.base.endpoints import HttpUrl, Mailbox, SmtpServer, mail_address, provider_url, signing_secrets, token


@pytest.mark.parametrize(
    ("text", "address", "name"),
    [
        ("ada@example.com", "ada@example.com", ""),
        (" ada@EXAMPLE.com ", "ada@example.com", ""),
        ("Ada Lovelace <ada@example.com>", "ada@example.com", "Ada Lovelace"),
        ('"Lovelace, Ada" <ada@example.com>', "ada@example.com", "Lovelace, Ada"),
        ("<ada@example.com>", "ada@example.com", ""),
        ("Grüße <a.b+c@sub.example.co>", "a.b+c@sub.example.co", "Grüße"),
        ("root@localhost", "root@localhost", ""),
    ],
)
def test_a_mailbox_is_an_address_with_or_without_a_name(text: str, address: str, name: str) -> None:
    assert Mailbox.parse(text) == Mailbox(address, name)
    assert Mailbox.parse(str(Mailbox(address, name))) == Mailbox(address, name)


@pytest.mark.parametrize(
    "text", ["", "Ada", "Ada <>", "Ada <ada@example.com> x", "A\nB <ada@example.com>", "a@b@c <x>"]
)
def test_a_mailbox_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an email address such as name@example.com"):
        Mailbox.parse(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("a@bücher.example", "a@xn--bcher-kva.example"),
        ("a@BÜCHER.example", "a@xn--bcher-kva.example"),
        ("a@bu\u0308cher.example", "a@xn--bcher-kva.example"),
        ("a@xn--bcher-kva.example", "a@xn--bcher-kva.example"),
        ("a@例え.jp", "a@xn--r8jz45g.jp"),
    ],
)
def test_a_domain_in_any_script_has_one_form_in_ascii(text: str, address: str) -> None:
    assert mail_address(text) == address


@pytest.mark.parametrize(
    "text", ["a@straße.example", "a@ﬁsh.example", "a@example。com", "a@ⓔxample.com", "a@a\u200db.example"]
)
def test_a_domain_that_would_turn_into_another_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an email address"):
        mail_address(text)


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("smtp://mail.example.com", SmtpServer("mail.example.com", 587, tls=False, starttls=True)),
        ("smtp://mail.example.com:25?starttls=never", SmtpServer("mail.example.com", 25, tls=False, starttls=False)),
        ("smtp://mail.example.com/?starttls=required", SmtpServer("mail.example.com", 587, tls=False, starttls=True)),
        ("smtps://u:p@mail.example.com", SmtpServer("mail.example.com", 465, True, False, "u", "p")),
        ("smtp://u%40x:p%2F%3A%25%23@m.example:2525", SmtpServer("m.example", 2525, False, True, "u@x", "p/:%#")),
        ("smtp://u:p@localhost?starttls=never", SmtpServer("localhost", 587, False, False, "u", "p")),
        ("smtps://[::1]:4650", SmtpServer("::1", 4650, True, False)),
    ],
)
def test_a_mail_server_is_a_url(text: str, server: SmtpServer) -> None:
    assert SmtpServer.parse(text) == server


@pytest.mark.parametrize(
    "text",
    [
        "mail.example.com",
        "http://mail.example.com",
        "smtp://",
        "smtp://mail.example.com:x",
        "smtp://mail.example.com/path",
        "smtp://mail.example.com#x",
        "smtp://mail.example.com?starttls=maybe",
        "smtp://mail.example.com?tls=no",
        "smtp://mail.example.com?starttls",
        "smtp://u:p%0D%0A@mail.example.com",
        "smtp://ü:p@mail.example.com",
        "smtp://u:p#w@mail.example.com",
    ],
)
def test_a_mail_server_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a URL such as smtp://user@host:587"):
        SmtpServer.parse(text)


def test_a_password_never_travels_in_the_clear_over_a_network() -> None:
    with pytest.raises(ValueError, match="the password would be sent unencrypted"):
        SmtpServer.parse("smtp://u:p@mail.example.com?starttls=never")


def test_a_mail_servers_password_is_in_no_repr() -> None:
    assert "hush" not in repr(SmtpServer.parse("smtp://ada:hush@mail.example.com"))


@pytest.mark.parametrize(
    ("text", "parts", "authority"),
    [
        ("https://example.com", (True, "example.com", 443, "/"), "example.com"),
        ("https://EXAMPLE.com.:443/A?b=C", (True, "example.com", 443, "/A?b=C"), "example.com"),
        ("http://example.com:8080/?x", (False, "example.com", 8080, "/?x"), "example.com:8080"),
        ("http://example.com", (False, "example.com", 80, "/"), "example.com"),
        ("https://[2001:DB8:0::1]:8443/x", (True, "2001:db8::1", 8443, "/x"), "[2001:db8::1]:8443"),
        ("https://my_host-1/x", (True, "my_host-1", 443, "/x"), "my_host-1"),
    ],
)
def test_a_url_is_read_into_its_parts(text: str, parts: tuple[bool, str, int, str], authority: str) -> None:
    url = HttpUrl.parse(text)
    assert (url.secure, url.host, url.port, url.target) == parts
    assert url.authority == authority
    assert HttpUrl.parse(str(url)) == url


@pytest.mark.parametrize("text", ["http://example.com", "https://example.com?x=1", "https://u:p@example.com", "x"])
def test_a_provider_is_reached_by_https_or_on_this_machine(text: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        provider_url(text)
    assert str(provider_url("https://api.example.com/v2/")) == "https://api.example.com/v2"
    assert not provider_url("http://localhost:12111").secure


def test_a_token_is_one_word() -> None:
    assert token(" sk_live_1 ") == "sk_live_1"
    for text in ("a b", "a\r\nX: 1", "ü", ""):
        with pytest.raises(ValueError, match="one word of printable ASCII"):
            token(text)


def test_signing_secrets_are_of_a_size_that_cannot_be_guessed() -> None:
    def word(size: int) -> str:
        return "whsec_" + base64.b64encode(bytes(size)).decode()

    assert signing_secrets(f"{word(24)} {word(64)}") == (bytes(24), bytes(64))
    for text in (word(23), word(65), word(24).removeprefix("whsec_"), "whsec_", "whsec_?", f"{word(24)} x"):
        with pytest.raises(ValueError, match="whsec_ and the base64 of 24 to 64 random bytes"):
            signing_secrets(text)
