#!/usr/bin/env python3
"""Prints signed packets of python-ndn, one a line: type, kind and bytes in hexadecimal. `vectors.txt` is its output with
python-ndn 0.5.2; the signatures of ECDSA differ from run to run."""

from datetime import datetime

from Cryptodome.PublicKey import ECC
from ndn import encoding as enc
from ndn.app_support import nfd_mgmt, security_v2
from ndn.security import DigestSha256Signer, Ed25519Signer, HmacSha256Signer, Sha256WithEcdsaSigner

TIME_MS = 1_700_000_000_000
NONCE = 0x0102030405060708
KEY = "/example/KEY/k1"
SECRET = bytes(range(32))


def timed(signer):
    """Returns the signer with a fixed time and nonce in the SignatureInfo of Interests."""

    def write(info, inner=signer.write_signature_info):
        inner(info)
        info.signature_time, info.signature_nonce = TIME_MS, NONCE

    signer.write_signature_info = write
    return signer


def old_command(signer):
    """The components of a command in the older format, as ndn.app_support.nfd_mgmt.make_command signs them."""
    name = nfd_mgmt.make_command_v2("rib", "register", name="/example/a")
    name += [enc.Component.from_bytes(TIME_MS.to_bytes(8, "big")), enc.Component.from_bytes(NONCE.to_bytes(8, "big"))]
    info = enc.SignatureInfo()
    signer.write_signature_info(info)
    body = info.encode()
    name.append(enc.Component.from_bytes(bytes([enc.TypeNumber.SIGNATURE_INFO, len(body)]) + body))
    value = bytearray(signer.get_signature_value_size())
    size = signer.write_signature_value(memoryview(value), name)
    name.append(enc.Component.from_bytes(bytes([enc.TypeNumber.SIGNATURE_VALUE, size]) + value[:size]))
    return enc.make_interest(name, enc.InterestParam(nonce=7))


ed25519 = ECC.construct(curve="Ed25519", seed=SECRET)
ecdsa = ECC.construct(curve="P-256", d=int.from_bytes(SECRET, "big"))
signers = {
    "digest": DigestSha256Signer,
    "hmac": lambda: HmacSha256Signer(KEY, SECRET),
    "ecdsa": lambda: Sha256WithEcdsaSigner(KEY, ecdsa.export_key(format="DER")),
    "ed25519": lambda: Ed25519Signer(KEY, ed25519.export_key(format="DER", use_pkcs8=True)),
}
for kind, make in signers.items():
    name = nfd_mgmt.make_command_v2("rib", "register", name="/example/a")
    interest = enc.make_interest(name, enc.InterestParam(nonce=7, must_be_fresh=True), b"", signer=timed(make()))
    print(kind, "interest", bytes(interest).hex())
    print(kind, "old", bytes(old_command(make())).hex())
    data = enc.make_data("/example/data", enc.MetaInfo(freshness_period=1000), b"content", signer=make())
    print(kind, "data", bytes(data).hex())
begin, end = datetime(2020, 1, 1), datetime(2040, 1, 1)
for kind, key in (("ecdsa", ecdsa), ("ed25519", ed25519)):
    public = key.public_key().export_key(format="DER")
    _, wire = security_v2.new_cert(KEY, security_v2.SELF_COMPONENT, public, signers[kind](), begin, end)
    print(kind, "certificate", bytes(wire).hex())
    print(kind, "private", key.export_key(format="DER", use_pkcs8=True).hex())
print("ecdsa", "sec1", ecdsa.export_key(format="DER", use_pkcs8=False).hex())
print("hmac", "private", SECRET.hex())
