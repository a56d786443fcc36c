// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IPropAMMExactOut} from "./IPropAMMExactOut.sol";

/// @title The platform as a venue of proprietary-AMM routers.
/// @notice Trades at exactly the entrypoint's prices. Input that the caller has not pushed is pulled from it by allowance, so routers that
/// approve instead of transferring work too. Of the input nothing stays here: what a swap does not need goes back, to the caller on exact
/// input, to `refundRecipient` on exact output. It has no owner, keeps no token between transactions and can't change.
///
/// The taker of its swaps, in every event and API, is this contract, so a fee rate of this contract is paid by whoever trades through it;
/// both quotes include it. It passes on the entrypoint's own errors (see `IEntrypoint` and `ICurveBook`). Trading through it costs one more
/// transfer than calling the entrypoint.
interface IPropAmmAdapter is IPropAMMExactOut {
    /// @notice This amount can't be traded in this direction now: unknown pair, expired or empty curve, more than the depth or the vault's free
    /// liquidity, an amount of zero or above 2^100 - 1, or an output that rounds to zero.
    error NotTradable(address tokenIn, address tokenOut, uint256 amount);
    /// @notice The recipient's balance rose by less than the minimum, since the token kept a part of the transfer.
    error InsufficientOutput(uint256 delivered, uint256 minimum);
    /// @notice The output would stay in this contract, or the refund would go to one of the platform's contracts or to the zero address.
    error ForbiddenRecipient(address recipient);

    /// @notice The entrypoint that it trades with.
    function entrypoint() external view returns (address);

    /// @notice The lens that answers `isActive` and `getPairs`.
    function lens() external view returns (address);
}
