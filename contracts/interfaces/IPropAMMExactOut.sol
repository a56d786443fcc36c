// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {IPropAMM} from "./IPropAMM.sol";

/// @title Exact output, as an extension of {IPropAMM} that routers detect by ERC-165.
interface IPropAMMExactOut is IPropAMM, IERC165 {
    /// @notice What `swapExactOut` of this amount would take now. Needs no balance and no allowance; reverts when the swap would revert because
    /// of the market's state or the amount.
    function quoteExactOut(
        address tokenIn,
        address tokenOut,
        uint256 amountOut
    ) external view returns (uint256 amountIn);

    /// @notice Buys exactly `amountOut` for `recipient`. The caller has transferred `amountInMax`; what is not needed of it goes to
    /// `refundRecipient`. Reverts when more would be needed.
    /// @param deadline last second, inclusive, at which the swap may execute.
    /// @return amountIn what the swap took.
    function swapExactOut(
        address tokenIn,
        address tokenOut,
        uint256 amountOut,
        uint256 amountInMax,
        address recipient,
        address refundRecipient,
        uint256 deadline
    ) external returns (uint256 amountIn);
}
