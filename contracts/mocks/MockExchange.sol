// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// @title An external exchange for tests, which trades at any price that its caller names.
contract MockExchange {
    using SafeERC20 for IERC20;

    /// @notice Takes `amountIn` from the caller and pays `amountOut` out of its own holdings.
    function trade(address tokenIn, uint256 amountIn, address tokenOut, uint256 amountOut) external {
        IERC20(tokenIn).safeTransferFrom(msg.sender, address(this), amountIn);
        IERC20(tokenOut).safeTransfer(msg.sender, amountOut);
    }

    /// @notice Calls `target`, and reverts with the target's own reason if the call fails.
    function callBack(address target, bytes calldata data) external {
        (bool done, bytes memory result) = target.call(data);
        if (done) return;
        // Same as a revert of our own with the bytes of `result`, which Solidity has no statement for.
        assembly ("memory-safe") {
            revert(add(result, 32), mload(result))
        }
    }
}
