// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @notice Keeps a share of each transfer for itself.
contract FeeOnTransferToken is ERC20("Fee", "FEE") {
    uint256 private immutable FEE_PERCENT;

    constructor(uint256 feePercent) {
        FEE_PERCENT = feePercent;
    }

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function _update(address from, address to, uint256 amount) internal override {
        uint256 fee = from == address(0) || to == address(0) ? 0 : (amount * FEE_PERCENT) / 100;
        if (fee != 0) super._update(from, address(this), fee);
        super._update(from, to, amount - fee);
    }
}

/// @notice Gives the recipient of each transfer a share on top.
contract BonusToken is ERC20("Bonus", "BONUS") {
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        _mint(to, amount / 10);
        return super.transferFrom(from, to, amount);
    }
}

/// @notice Returns nothing from transfers, as some old tokens do.
contract SilentToken {
    mapping(address account => uint256) public balanceOf;
    mapping(address account => mapping(address spender => uint256)) public allowance;

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
    }

    function approve(address spender, uint256 amount) external {
        allowance[msg.sender][spender] = amount;
    }

    function transfer(address to, uint256 amount) external {
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
    }

    function transferFrom(address from, address to, uint256 amount) external {
        allowance[from][msg.sender] -= amount;
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
    }
}

/// @notice Says yes to a transfer without doing it.
contract LyingToken is ERC20("Lie", "LIE") {
    bool private _lies;

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function lie() external {
        _lies = true;
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        return _lies ? true : super.transferFrom(from, to, amount);
    }
}

/// @notice Makes one call of its own before the next transfer, when the sender's balance has not changed yet.
contract VaultHookToken is ERC20("Vault hook", "VHOOK") {
    address private immutable TARGET;
    bytes private _planned;
    bytes public lastError;

    constructor(address target) {
        TARGET = target;
    }

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function plan(bytes calldata data) external {
        _planned = data;
    }

    function transfer(address to, uint256 amount) public override returns (bool) {
        bytes memory data = _planned;
        delete _planned;
        if (data.length != 0) (, lastError) = TARGET.call(data);
        return super.transfer(to, amount);
    }
}

/// @notice Calls whoever asked for it before it moves tokens out of the asker's account, as ERC-777 tokens do.
contract HookToken is ERC20("Hook", "HOOK") {
    mapping(address account => bool) private _hooked;

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function setHook(bool on) external {
        _hooked[msg.sender] = on;
    }

    function _update(address from, address to, uint256 amount) internal virtual override {
        if (_hooked[from]) Hooked(from).beforeSend(to, amount);
        super._update(from, to, amount);
        if (_hooked[to]) Hooked(to).afterReceive(from, amount);
    }
}

/// @notice Calls its holders, and keeps a share of each transfer for itself.
contract ChargingHookToken is HookToken {
    uint256 private immutable FEE_PERCENT;

    constructor(uint256 feePercent) {
        FEE_PERCENT = feePercent;
    }

    function _update(address from, address to, uint256 amount) internal override {
        uint256 fee = from == address(0) || to == address(this) ? 0 : (amount * FEE_PERCENT) / 100;
        super._update(from, to, amount - fee);
        if (fee != 0) super._update(from, address(this), fee);
    }
}

interface Hooked {
    function beforeSend(address to, uint256 amount) external;
    function afterReceive(address from, uint256 amount) external;
}

/// @notice Fails with three words, whatever it is asked.
contract Refusing {
    fallback() external {
        assembly ("memory-safe") {
            let reason := mload(0x40)
            mstore(reason, 1)
            mstore(add(reason, 0x20), 2)
            mstore(add(reason, 0x40), 3)
            revert(reason, 0x60)
        }
    }
}

/// @notice A token with means that it does not let go of: its payments fail with as many words as the entrypoint answers.
contract FailsWithTwoWords {
    function balanceOf(address) external pure returns (uint256) {
        return 10 ** 30;
    }

    function transfer(address, uint256) external pure {
        assembly ("memory-safe") {
            revert(add(mload(0x40), 0x200), 64)
        }
    }
}

/// @notice Tells no balance any more once it has been moved.
contract FallsSilent {
    error Silent();

    /// @dev Far from where other tokens have anything, whose place it takes.
    uint256 private constant MOVED_SLOT = 2 ** 200;

    function balanceOf(address) external view returns (uint256) {
        bool moved;
        assembly ("memory-safe") {
            moved := sload(MOVED_SLOT)
        }
        if (moved) revert Silent();
        return 10 ** 30;
    }

    function transferFrom(address, address, uint256) external returns (bool) {
        assembly ("memory-safe") {
            sstore(MOVED_SLOT, 1)
        }
        return true;
    }
}

/// @notice A venue that is the token of its own shares, as some pools are.
contract ShareVenue is ERC20("Shares", "LP") {
    function trade(address tokenIn, uint256 amountIn, address tokenOut, uint256 amountOut) external {
        ERC20(tokenIn).transferFrom(msg.sender, address(this), amountIn);
        ERC20(tokenOut).transfer(msg.sender, amountOut);
    }

    function increaseAllowance(address spender, uint256 amount) external {
        _approve(msg.sender, spender, allowance(msg.sender, spender) + amount);
    }
}

/// @notice Takes all the gas that it gets for whatever it is called with.
contract BurningToken {
    fallback() external {
        assembly ("memory-safe") {
            invalid()
        }
    }
}
