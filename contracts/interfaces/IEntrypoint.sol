// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IOrderSettler} from "./IOrderSettler.sol";

/// @title Where takers trade.
/// @notice Every swap trades against the live curve of its market, at exactly the quoted amounts, or reverts whole.
///
/// The settler is the contract that executes signed orders; it is fixed in the implementation and may be absent.
///
/// Trust: the owner sets each taker's fee rate, at most 1 %, to be charged in markets whose fees are on, and can replace the implementation.
/// The settler is trusted with the name of the taker and the size of the input fee in the `Swap` event, and with nothing else: what an
/// order pays is measured here.
///
/// Input is measured by the vault's balance. Output is what the vault sends: a token that keeps a part of each transfer delivers less than the
/// amounts here say, so such tokens must not be listed.
interface IEntrypoint {
    /// @notice The one event of a trade; it holds all that is needed to attribute it. `quoteAmount` and `baseAmount` are the full amounts of the
    /// curve: what came in, without `inputFee`, and what went out, plus `fee`. `fee` is in the output token. `inputFee` is the part of a gasless
    /// order's input that the operator keeps, on top of the curve amount; it reached the vault together with the rest of the input. It is zero
    /// on direct swaps.
    event Swap(
        bytes32 indexed market,
        address indexed taker,
        address indexed recipient,
        uint256 fillSeq,
        uint256 curveSeq,
        bool isBuy,
        uint256 baseAmount,
        uint256 quoteAmount,
        uint256 fee,
        uint256 inputFee,
        uint256 consumedBefore
    );
    /// @notice The fee of `taker`, in parts per million of its output, from now on.
    event TakerFeeSet(address indexed taker, uint256 ratePpm);

    /// @notice block.timestamp is past `deadline`.
    error DeadlinePassed(uint256 deadline);
    /// @notice `delivered`, the output after the fee, is less than the minimum.
    error InsufficientOutput(uint256 delivered, uint256 minimum);
    /// @notice The swap costs `required`: more than the maximum.
    error ExcessiveInput(uint256 required, uint256 maximum);
    /// @notice The vault got less of the input than `required`: the token keeps a part of what is moved, or did not move it.
    error InsufficientReceived(address token, uint256 received, uint256 required);
    /// @notice Zero and the platform's own contracts are no recipients.
    error ForbiddenRecipient(address recipient);
    /// @notice A rate can be at most `maximumPpm`, 10,000 parts per million.
    error FeeTooHigh(uint256 ratePpm, uint256 maximumPpm);
    /// @notice Only the settler may swap for others.
    error NotSettler(address caller);
    /// @notice `collectInputFee` was called, by way of a token's hook, from inside a deposit, which would be credited with the fee as well, or
    /// from inside a settlement or the execution of a claim.
    error CustodianLocked();

    /// @notice The caller's EIP-2612 approval of this contract: `owner` is the caller and `spender` this contract.
    struct Permit {
        uint256 value;
        uint256 deadline;
        uint8 v;
        bytes32 r;
        bytes32 s;
    }

    /// @notice How a signed order, or a part of it, trades against the curve.
    struct OrderSwap {
        /// @dev What is sold, or bought if exactOut.
        uint256 amount;
        /// @dev The least output, or with exactOut the most input, `inputFee` not included.
        uint256 limit;
        /// @dev Input that the vault must receive on top of what the curve asks for.
        uint256 inputFee;
        bool exactOut;
        IOrderSettler.OrderHead order;
    }

    /// @notice Sells exactly `amountIn` of `tokenIn`, which the caller must have approved to this contract. `amountIn` is at offset 68 of the
    /// call data, selector included. The output is rounded down, the fee, too. Reverts `DeadlinePassed`; the errors of `ICurveBook.consume`;
    /// `InsufficientOutput`; the token's own error, or `InsufficientReceived`, when the input does not arrive; `InsufficientLiquidity` and
    /// `ForbiddenRecipient` of the custodian.
    /// @param amountIn units of `tokenIn`, below 2^100.
    /// @param minAmountOut least output after the fee, in units of `tokenOut`.
    /// @param recipient gets the output: not zero and none of the platform's contracts.
    /// @param deadline last second, inclusive, at which the swap may execute.
    /// @return amountOut what was sent to `recipient`, after the fee.
    function swap(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut,
        address recipient,
        uint256 deadline
    ) external returns (uint256 amountOut);

    /// @notice Buys exactly `amountOut` of `tokenOut`, after the fee. The input is rounded up. Reverts as `swap` does, with `ExcessiveInput`
    /// instead of `InsufficientOutput`.
    /// @param amountOut what is sent to `recipient`, in units of `tokenOut`, below 2^100.
    /// @param maxAmountIn most that the caller pays, in units of `tokenIn`.
    /// @return amountIn what the caller paid.
    function swapExactOutput(
        address tokenIn,
        address tokenOut,
        uint256 amountOut,
        uint256 maxAmountIn,
        address recipient,
        uint256 deadline
    ) external returns (uint256 amountIn);

    /// @notice `swap` by the caller's EIP-2612 approval. If the approval fails, for instance because somebody else has submitted it already,
    /// that is ignored: the swap is executed if the allowance suffices and reverts with the token's own error if not.
    function swapWithPermit(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut,
        address recipient,
        uint256 deadline,
        Permit calldata permit
    ) external returns (uint256 amountOut);

    /// @notice `swapExactOutput` by the caller's EIP-2612 approval, which is treated as in `swapWithPermit`.
    function swapExactOutputWithPermit(
        address tokenIn,
        address tokenOut,
        uint256 amountOut,
        uint256 maxAmountIn,
        address recipient,
        uint256 deadline,
        Permit calldata permit
    ) external returns (uint256 amountIn);

    /// @notice Swaps for a signed order, without a taker fee; the `Swap` event names the order's owner as taker. Settler only, else
    /// `NotSettler`. This contract calls the settler's `deliver`, which must bring the input into the vault: the custodian's balance is read
    /// before and after, under the lock that every swap holds. The call data behind the request, which is the rest of the order, is passed to
    /// `deliver` unchanged. Reverts as `swap` and `swapExactOutput` do, but for the deadline, which Permit2 checks.
    /// @return amountIn What the curve took, `inputFee` not included.
    /// @return amountOut What was sent to the recipient.
    function swapWithCallback(OrderSwap calldata request) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice Brings an amount of the sell token into the vault as the operator's fee of an order of which `swapWithCallback` trades nothing:
    /// calls the settler's `deliver` and checks the custodian's balance as `swapWithCallback` does. Settler only. Reverts `CustodianLocked`
    /// while `ICustodian.isLocked()`, since a deposit would be credited with the fee as well, and `InsufficientReceived`.
    function collectInputFee(IOrderSettler.Delivery calldata delivery) external;

    /// @notice Gross output of `swap` with this input, equal to amountOut + fee to the unit; zero whenever the swap would revert because of the
    /// market's state or the amount: unknown pair, expired or empty curve, more than the depth or the vault's free liquidity, an amount of zero
    /// or above 2^100 - 1, an output that rounds to zero.
    function quote(address tokenIn, address tokenOut, uint256 amountIn) external view returns (uint256 amountOut);

    /// @notice Input needed for a gross output of `amountOut`, so for what the recipient gets plus the fee; zero in the same cases.
    function quoteExactOutput(
        address tokenIn,
        address tokenOut,
        uint256 amountOut
    ) external view returns (uint256 amountIn);

    /// @notice `quote` less the fee of `taker`, if this market charges fees: what `swap` would send.
    function quoteFor(
        address taker,
        address tokenIn,
        address tokenOut,
        uint256 amountIn
    ) external view returns (uint256 amountOut);

    /// @notice Input that `swapExactOutput` of `taker` would take for `amountOut` now: `quoteExactOutput` of the amount with the fee of
    /// `taker` on top, if this market charges fees. Zero in the same cases.
    function quoteForExactOutput(
        address taker,
        address tokenIn,
        address tokenOut,
        uint256 amountOut
    ) external view returns (uint256 amountIn);

    /// @notice Whether a swap is under way in this transaction. Its input is measured by the vault's balance, so whoever credits tokens to
    /// somebody else by that balance must not do so meanwhile.
    function isLocked() external view returns (bool);

    /// @notice Sets the fee rate of `taker`, at most 10,000 parts per million of the output, else `FeeTooHigh`. Owner only. It is charged in
    /// markets whose fees are on (`ICurveBook.setTakerFees`) and nowhere else. The settler pays none; a rate of an adapter is
    /// paid by whoever trades through it.
    /// At its worst, whoever may call this takes that much of a taker's output, as far as the taker's own minimum allows.
    function setTakerFee(address taker, uint256 ratePpm) external;

    /// @notice Parts per million of its output that `taker` pays, zero for most.
    function takerFee(address taker) external view returns (uint256 ratePpm);
}
