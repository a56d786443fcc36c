// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IPropAMMExactOut} from "./IPropAMMExactOut.sol";

/// @title The platform as a venue of proprietary-AMM routers.
/// @notice Trades at exactly the entrypoint's prices. Input that the caller has not pushed is pulled from it by allowance, so routers that
/// approve instead of transferring work too. Of the input nothing stays here: what a swap does not need goes back, to the caller on exact
/// input, to `refundRecipient` on exact output. It has no owner, keeps no token between transactions and can't change.
///
/// The taker of its swaps, in every event and API, is this contract, whose fee rate is zero. The entrypoint's own errors come through
/// as they are (see `IEntrypoint` and `ICurveBook`). Trading through it costs one more transfer than calling the entrypoint.
interface IPropAmmAdapter is IPropAMMExactOut {
    /// @notice Nothing to trade in this direction for this amount now: unknown pair, expired or empty curve, beyond depth or the vault's free
    /// liquidity, or rounding to zero.
    error NotTradable(address tokenIn, address tokenOut, uint256 amount);
    /// @notice The recipient's balance rose by less than the minimum, since the token kept a part.
    error InsufficientOutput(uint256 delivered, uint256 minimum);
    /// @notice The output would stay in this contract, or the refund would go to one of the platform's contracts, or to nobody.
    error ForbiddenRecipient(address recipient);

    /// @notice Where it trades.
    function entrypoint() external view returns (address);

    /// @notice What `isActive` and `getPairs` go by.
    function lens() external view returns (address);
}
