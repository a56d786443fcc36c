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
interface IEntrypoint {
    /// @notice The one event of a trade; it holds all that is needed to attribute it.
    /// `quoteAmount` is the full curve amount: what came in on a buy, what went out plus `fee` on a sell. `baseAmount` likewise is
    /// gross. `fee` is in the output token. `inputFee` is the part of a gasless order's input kept by the operator, on top of the
    /// curve amount; it has reached the vault together with the rest of the input. It is zero on direct swaps.
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
    /// @notice The recipient would get `delivered`, after the fee: less than the minimum.
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
    /// @notice The fee of an order is brought from inside a deposit, which would be credited with it as well, or from inside the execution of a
    /// claim, by a token's hook.
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

    /// @notice Sells exactly `amountIn` of `tokenIn`; `amountIn` sits at calldata offset 68.
    /// @param minAmountOut limit on what `recipient` receives, after the fee.
    /// @param deadline last second, inclusive, at which the swap may execute.
    /// @return amountOut what `recipient` received.
    function swap(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut,
        address recipient,
        uint256 deadline
    ) external returns (uint256 amountOut);

    /// @notice Buys exactly `amountOut` of `tokenOut`, after the fee.
    /// @return amountIn what the caller paid.
    function swapExactOutput(
        address tokenIn,
        address tokenOut,
        uint256 amountOut,
        uint256 maxAmountIn,
        address recipient,
        uint256 deadline
    ) external returns (uint256 amountIn);

    /// @notice `swap` by the caller's EIP-2612 approval. An approval that fails, such as one that somebody else has already submitted,
    /// is passed over: the swap goes through if the allowance suffices and reverts with the token's own error if not.
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

    /// @notice Swaps for a signed order, without a taker fee; the `Swap` event names the order's owner as taker. Settler only, which is called
    /// back by `deliver` for the input and must then have brought it into the vault: the custodian's balance is read before and after, under
    /// the lock that every swap holds. What follows the request, which is the rest of the order, is handed back to the settler as it is.
    /// @return amountIn What the curve took, `inputFee` not included.
    /// @return amountOut What the recipient received.
    function swapWithCallback(OrderSwap calldata request) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice Brings an amount of the sell token into the vault as the operator's fee of an order that does not trade against the curve: calls
    /// the settler's `deliver` and checks the custodian's balance as `swapWithCallback` does. Settler only; reverts `CustodianLocked` from
    /// inside a deposit, which would be credited with the fee as well, and from inside the execution of a claim.
    function collectInputFee(IOrderSettler.Delivery calldata delivery) external;

    /// @notice Gross output of `swap` with this input, equal to amountOut + fee to the unit; zero whenever the swap would revert for
    /// the market's sake: unknown pair, expired or empty curve, beyond depth or the vault's free liquidity, rounding to zero.
    function quote(address tokenIn, address tokenOut, uint256 amountIn) external view returns (uint256 amountOut);

    /// @notice Input needed for a gross output of `amountOut`; zero in the same cases.
    function quoteExactOutput(
        address tokenIn,
        address tokenOut,
        uint256 amountOut
    ) external view returns (uint256 amountIn);

    /// @notice `quote` after the fee of `taker`, if this market charges fees.
    function quoteFor(
        address taker,
        address tokenIn,
        address tokenOut,
        uint256 amountIn
    ) external view returns (uint256 amountOut);

    /// @notice Whether a swap is under way in this transaction. Its input is measured by the vault's balance, so whoever credits tokens to
    /// somebody else by that balance must not do so meanwhile.
    function isLocked() external view returns (bool);

    /// @notice Owner only; at most 10,000 parts per million of the output. It is charged in markets whose fees are on
    /// (`ICurveBook.setTakerFees`) and nowhere else. Rates of the settler and of adapters should stay zero.
    /// At its worst, whoever may call this takes that much of a taker's output, as far as the taker's own minimum allows.
    function setTakerFee(address taker, uint256 ratePpm) external;

    /// @notice Parts per million of its output that `taker` pays, zero for most.
    function takerFee(address taker) external view returns (uint256 ratePpm);
}
