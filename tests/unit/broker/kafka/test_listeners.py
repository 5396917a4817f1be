from pathlib import Path

from forebay.broker.kafka.listeners import Listener, plain, scram, unsigned_tokens


def test_plain_text_needs_no_properties():
    assert Listener().properties() == {}


def test_each_mechanism_gets_its_login_under_its_own_name():
    mechanisms = {**plain({"alice": "secret"}), **scram(), **unsigned_tokens()}
    properties = Listener("SASL_PLAINTEXT", mechanisms, reauthenticate_ms=4000).properties()
    of_client = "listener.name.client."
    assert properties[of_client + "sasl.enabled.mechanisms"] == "PLAIN,SCRAM-SHA-512,OAUTHBEARER"
    assert 'user_alice="secret"' in properties[of_client + "plain.sasl.jaas.config"]
    assert properties[of_client + "oauthbearer.connections.max.reauth.ms"] == "4000"


def test_a_certificate_is_given_as_one_file():
    properties = Listener("SSL", key_and_certificate=Path("/both.pem")).properties()
    assert properties["listener.name.client.ssl.keystore.type"] == "PEM"
    assert properties["listener.name.client.ssl.keystore.location"] == "/both.pem"
