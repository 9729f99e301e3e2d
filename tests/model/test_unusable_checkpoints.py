"""What is no checkpoint of Dia, but often taken for one: the refusal names the cause."""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from dia_demo.checkpoint_files import INDEX, SAFETENSORS
from dia_demo.errors import InputError
from tests.helpers.models.checkpoints import load, write_small


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = write_small(tmp_path_factory.mktemp("checkpoint"))
    (folder / INDEX).unlink()
    (shard,) = folder.glob("*.safetensors")
    shard.rename(folder / SAFETENSORS)
    return folder


@pytest.fixture
def folder(source, tmp_path):
    """A copy of it to damage."""
    return shutil.copytree(source, tmp_path / "copy")


def refusal(folder) -> str:
    with pytest.raises(InputError) as caught:
        load(folder)
    return str(caught.value)


def rewrite(folder, change) -> None:
    """Damage the weights: `change` edits the table of tensors in place."""
    state = load_file(folder / SAFETENSORS)
    change(state)
    save_file(state, folder / SAFETENSORS)


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod."])
def test_names_that_a_training_tool_changed_are_said_once(folder, prefix):
    rewrite(folder, lambda state: [state.update({prefix + k: state.pop(k)}) for k in list(state)])
    said = refusal(folder)
    assert f"begin with {prefix.split('.')[0] + '.'!r}" in said and len(said) < 400


def test_an_adapter_is_named_as_such(folder):
    rewrite(folder, lambda state: state.update({"base_model.model.a.lora_A.weight": torch.ones(2)}))
    assert "LoRA adapter" in refusal(folder) and len(refusal(folder)) < 400
    (folder / "config.json").unlink()
    (folder / "adapter_config.json").write_text("{}")
    assert "LoRA adapter" in refusal(folder)


@pytest.mark.parametrize("name", [SAFETENSORS, "config.json", "dia-v1.pth"])
def test_a_pointer_of_git_lfs_is_named_as_such(folder, name):
    (folder / SAFETENSORS).unlink()
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 6442450944\n"
    (folder / name).write_text(pointer)
    assert f"{name} is a Git LFS pointer" in refusal(folder)
