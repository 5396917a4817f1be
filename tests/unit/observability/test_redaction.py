import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.observability.redaction import TEXT_LENGTH_MAX, scrub, scrub_fields

SECRET = "s3cr3tVALUE"

GOLDEN = [
    (
        "GET https://user:s3cr3tVALUE@h.example/bucket/a/b.pdf?X-Amz-Signature=s3cr3tVALUE failed",
        "GET https://h.example/bucket/… failed",
    ),
    ("https://hooks.example/services/T0/B0/s3cr3tVALUE", "https://hooks.example/services/…"),
    ("https://h.example/s3cr3tVALUE.pdf", "https://h.example/…"),
    ("https://h.example?sig=s3cr3tVALUE", "https://h.example…"),
    ("kafka://broker:9092 answers", "kafka://broker:9092 answers"),
    ("/bucket/key?se=1&sig=s3cr3tVALUE", "/bucket/key?se=1&sig=***"),
    ('{"password": "s3cr3t VALUE", "n": 1}', '{"password": ***, "n": 1}'),
    ("{'api_key': 's3cr3tVALUE'}", "{'api_key': ***}"),
    ("api-key=s3cr3tVALUE", "api-key=***"),
    ("SharedAccessKey=s3cr3tVALUE==", "SharedAccessKey=***"),
    ("client_secret: s3cr3tVALUE", "client_secret: ***"),
    ("Authorization: Bearer s3cr3tVALUE", "Authorization: *** ***"),
    ("sent basic czNjcjN0VkFMVUU= along", "sent basic *** along"),
    ("token eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln ends", "token *** ends"),
    ("mail o'brien+x@mail.example.org now", "mail ***@*** now"),
    ("call +49 170 1234567 or (555) 123-4567", "call *** or ***"),
]

HARMLESS = [
    "at 2026-11-18T09:10:02.114Z and on 2026-11-18",
    "resumes at orders[0..3] = 3,120 3,044 3,101 3,066",
    "topic authorization failed",
    "listening on 127.0.0.1:9092",
    "design 4, signed off, 12345678901234",
    "orders[3]@1204 took 0.25 s",
]


@pytest.mark.parametrize(("text", "expected"), GOLDEN)
def test_a_secret_is_taken_out_and_the_rest_stays(text, expected):
    assert scrub(text) == expected


@pytest.mark.parametrize("text", HARMLESS)
def test_dates_offsets_and_words_are_not_taken_for_secrets(text):
    assert scrub(text) == text


WRAPPED = [
    "https://{}@host.example/a/b",
    "https://host.example/a/{}/b",
    "https://host.example/a?x={}",
    "wss+x://u:{}@host.example:1/a#f",
    "password={}",
    "my_password : {}",
    '"secret":"{}"',
    "'token': '{}'",
    "X-Amz-Security-Token={}",
    "?sv=1&sig={}&se=2",
    "AccountKey={};EndpointSuffix=x",
    "bearer {}",
    "Basic {}",
    "{}@mail.example",
    "eyJ{}.{}.{}",
]
secrets = st.text("abcdefXYZ0123456789-_", min_size=12, max_size=40).map(lambda text: "Q7" + text)


@given(secret=secrets, wrapping=st.sampled_from(WRAPPED), before=st.text(), after=st.text())
def test_no_seeded_secret_appears(secret, wrapping, before, after):
    seeded = wrapping.replace("{}", secret)
    assert secret not in scrub(f"{before} {seeded} {after}")


@given(st.text())
def test_any_text_is_scrubbed_without_an_error(text):
    scrub(text)


def test_a_long_text_is_cut_where_a_token_ends():
    text = "x " * (TEXT_LENGTH_MAX // 2 - 5) + "password=" + SECRET * 100
    assert len(scrub(text)) <= TEXT_LENGTH_MAX + 2
    assert SECRET not in scrub(text)


@pytest.mark.parametrize(
    "hostile",
    ["a", "a-", "eyJ-", "token", "sig=", "a@", "://", "a://", "+1", '"', 'password="\\', "1-", " "],
)
def test_hostile_text_costs_linear_time(hostile):
    started = time.process_time()
    scrub(hostile * (TEXT_LENGTH_MAX // len(hostile)))
    assert time.process_time() - started < 0.5


def test_lists_and_names_in_fields_are_scrubbed_too():
    fields = scrub_fields({"a": ["pwd=x1"], "b": {"k": "pwd=x2"}, "n": 3})
    assert fields == {"a": ["pwd=***"], "b": {"k": "pwd=***"}, "n": 3}
