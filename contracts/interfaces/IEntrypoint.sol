// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title Where takers trade.
/// @notice Every swap trades against the live curve of its market, at exactly the quoted amounts, or reverts whole.
///
/// Trust: the owner sets each taker's fee rate, at most 1 %, and can replace the implementation.
interface IEntrypoint {
    /// @notice The one event of a trade; it holds all that is needed to attribute it.
    /// `quoteAmount` is the full curve amount: what came in on a buy, what went out plus `fee` on a sell. `baseAmount` likewise is
    /// gross. `fee` is in the output token. `inputFee` is the part of a gasless order's input kept by the operator, on top of the
    /// curve amount; it is zero on direct swaps.
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
    event TakerFeeSet(address indexed taker, uint256 ratePpm);

    error DeadlinePassed(uint256 deadline);
    error InsufficientOutput(uint256 delivered, uint256 minimum);
    error ExcessiveInput(uint256 required, uint256 maximum);
    error InsufficientReceived(address token, uint256 received, uint256 required);
    error ForbiddenRecipient(address recipient);
    error FeeTooHigh(uint256 ratePpm, uint256 maximumPpm);

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

    /// @notice Gross output of `swap` with this input, equal to amountOut + fee to the unit; zero whenever the swap would revert for
    /// the market's sake: unknown pair, expired or empty curve, beyond depth or the vault's free liquidity, rounding to zero.
    function quote(address tokenIn, address tokenOut, uint256 amountIn) external view returns (uint256 amountOut);

    /// @notice Input needed for a gross output of `amountOut`; zero in the same cases.
    function quoteExactOutput(address tokenIn, address tokenOut, uint256 amountOut)
        external
        view
        returns (uint256 amountIn);

    /// @notice `quote` after the fee of `taker`.
    function quoteFor(address taker, address tokenIn, address tokenOut, uint256 amountIn)
        external
        view
        returns (uint256 amountOut);

    /// @notice Owner only; at most 10,000 parts per million of the output.
    function setTakerFee(address taker, uint256 ratePpm) external;

    function takerFee(address taker) external view returns (uint256 ratePpm);
}
