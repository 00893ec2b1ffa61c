"""The last step: a noisy value, and a certificate that says what was really guaranteed."""

from lessnoise.release.certificate import Certificate
from lessnoise.release.folder import CertifiedFolder, verified
from lessnoise.release.pair import certificate_path, check_writable
from lessnoise.release.payment import IN_MEMORY, Payment, check_payment, reason
from lessnoise.release.release import Release, release, release_answer
from lessnoise.release.signer import Signer
from lessnoise.release.streamed import open_array, release_file

__all__ = [
    "IN_MEMORY",
    "Certificate",
    "CertifiedFolder",
    "Payment",
    "Release",
    "Signer",
    "certificate_path",
    "check_payment",
    "check_writable",
    "open_array",
    "reason",
    "release",
    "release_answer",
    "release_file",
    "verified",
]
