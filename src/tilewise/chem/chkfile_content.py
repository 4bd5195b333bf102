"""What a chkfile of PySCF holds, read in a process of its own: HDF5 may hang or crash over a damaged file."""

from __future__ import annotations

import io
import resource
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

from tilewise.errors import InputError
from tilewise.hdf5 import read_array, reason_of

RESULTS = ("e_tot", "mo_energy", "mo_occ", "mo_coeff")
MOLECULE = "mol"
PATIENCE = 30
"""Seconds of a processor; a file of a thousand basis functions takes less than one."""
LONGEST = 600.0
"""Seconds of the clock, if the reader waits for something else than a processor."""
_REFUSED = 2


def chkfile_content(path: Path) -> tuple[str, dict[str, np.ndarray]]:
    """The text of the molecule and the arrays of the SCF."""
    command = [sys.executable, "-P", "-m", __name__, str(path), str(PATIENCE)]
    too_long = f"{path.name}: the chkfile is damaged, it could not be read within"
    try:
        done = subprocess.run(command, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"{too_long} {LONGEST:g} s") from None
    if done.returncode == -signal.SIGXCPU:
        raise InputError(f"{too_long} {PATIENCE} s of a processor")
    if done.returncode == _REFUSED:
        raise InputError(done.stderr.decode().strip())
    if done.returncode:
        raise InputError(f"{path.name}: the chkfile is damaged, its reader ended with {done.returncode}")
    with np.load(io.BytesIO(done.stdout)) as arrays:
        return str(arrays[MOLECULE]), {name: arrays[name] for name in RESULTS}


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with h5py.File(path, "r") as file:
            if MOLECULE not in file or not isinstance(file.get("scf"), h5py.Group):
                raise InputError(
                    f"{path.name} is a HDF5 file, but not the chkfile of a PySCF SCF: it lacks /mol or /scf"
                )
            missing = [name for name in RESULTS if not _parts(file["scf"], name)]
            if missing:
                raise InputError(
                    f"{path.name}: the chkfile has no SCF of a molecule, it lacks /scf/{missing[0]}"
                )
            content = file[MOLECULE][()]
            text = content.decode() if isinstance(content, bytes) else str(content)
            return {MOLECULE: np.array(text)} | {name: _array(file["scf"], name) for name in RESULTS}
    except InputError:
        raise
    except Exception as error:  # h5py raises many kinds over damaged files
        raise InputError(
            f"{path.name}: the chkfile is damaged, it cannot be read ({reason_of(error)})"
        ) from None


def _parts(group: h5py.Group, name: str) -> list[tuple[h5py.Group, str]]:
    """Where an array lies: by its name, or as PySCF's list of two for the spins of a UHF."""
    if isinstance(group.get(name), h5py.Dataset):
        return [(group, name)]
    listed = group.get(f"{name}__from_list__")
    if not isinstance(listed, h5py.Group) or len(listed) != 2:
        return []
    return [(listed, key) for key in sorted(listed) if isinstance(listed.get(key), h5py.Dataset)]


def _array(group: h5py.Group, name: str) -> np.ndarray:
    arrays = [read_array(*part) for part in _parts(group, name)]
    return arrays[0] if isinstance(group.get(name), h5py.Dataset) else np.stack(arrays)


def _main() -> int:
    """Sends the content of the file that is named to the standard output, or says what is wrong with it."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        image = io.BytesIO()
        np.savez(image, **_read(Path(sys.argv[1])))  # type: ignore[arg-type]
    except InputError as error:
        print(error, file=sys.stderr)
        return _REFUSED
    sys.stdout.buffer.write(image.getbuffer())
    return 0


if __name__ == "__main__":
    sys.exit(_main())
