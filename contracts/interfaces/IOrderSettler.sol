// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title Executes signed orders, so that their owners need no gas.
/// @notice An order is a Permit2 `PermitWitnessTransferFrom` signature over the sell token, the most that may be taken of it, a nonce and a
/// deadline, with this contract as spender and `OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)` as witness. Its key
/// is (owner, nonce), which Permit2 lets through once. Owners approve Permit2 and never this contract.
///
/// Whatever the route, the recipient receives at least `minAmountOut` of the buy token and everything beyond it that the route brought, or
/// the call reverts whole. Of the sell token, what the route does not need is not taken, or goes back to the owner. Between transactions
/// this contract holds no token and has granted no allowance; what somebody sends here by mistake goes to the next routed order of that token.
///
/// Trust: whether an order is run as exact input or as exact output, by which route, and with which fee is not in the signature. So the
/// worst holder of an executor's key can take from each order that is signed, unexpired and unused, and that it knows of, whatever a fill
/// at fair prices would bring beyond `minAmountOut`: as `feeAmount`, which only goes to the vault, or by a bad trade at an external target.
/// It can take nothing from anyone without such an order, nor bring a recipient less than was signed. The owner chooses the executors and
/// the external targets; at its worst it can do what an executor can. It cannot change the code.
interface IOrderSettler {
    /// @notice An order was filled: `owner` gave `amountIn` of `tokenIn` net of what was returned, of which `feeAmount` went to the vault as
    /// the operator's, and `recipient` received `amountOut` of `tokenOut`.
    /// `feeInSwap` tells where the fee is booked: true if it is the `inputFee` of the `Swap` event of the same transaction, false if it
    /// reached the vault by a transfer that only this event accounts for.
    event OrderFilled(
        address indexed owner,
        uint256 indexed nonce,
        address indexed recipient,
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 amountOut,
        uint256 feeAmount,
        bool feeInSwap
    );
    /// @notice Whether `executor` may execute orders from now on.
    event ExecutorSet(address indexed executor, bool allowed);
    /// @notice Whether routes may call `target` from now on.
    event TargetSet(address indexed target, bool allowed);

    /// @notice Only executors may fill orders.
    error NotExecutor(address caller);
    /// @notice Only the entrypoint may ask for payment, and only within an order.
    error NotEntrypoint(address caller);
    /// @notice Not allow-listed, a token of the order or the call at hand, or called to approve somebody; the entrypoint for another call than a
    /// swap; in `setTarget`: Permit2, a contract of the platform, a token that is traded on the platform, or no contract at all.
    error ForbiddenTarget(address target);
    /// @notice Zero and the platform's own contracts are no recipients.
    error ForbiddenRecipient(address recipient);
    /// @notice An order must buy another token than it sells.
    error SameToken(address token);
    /// @notice The fee exceeds the input that it is taken from.
    error FeeTooHigh(uint256 feeAmount, uint256 amountIn);
    /// @notice The route takes `required` of the sell token: more than the owner signed.
    error ExcessiveInput(uint256 required, uint256 maximum);
    /// @notice The recipient would get `delivered`: less than the owner signed.
    error InsufficientOutput(uint256 delivered, uint256 minimum);
    /// @notice A target reverted with `reason`, its own revert data.
    error CallFailed(address target, bytes reason);
    /// @notice `amountAt` of a call is not behind its selector, or not within its data.
    error MisplacedAmount(uint256 offset);
    /// @notice Something else than a token's `permit` for Permit2.
    error ForbiddenPermit(address token);

    /// @notice What the owner signed, and the signature.
    struct Order {
        address owner;
        address tokenIn;
        /// @dev The permitted amount: the most that is ever taken, fee included.
        uint256 maxAmountIn;
        uint256 nonce;
        /// @dev Last second, inclusive.
        uint256 deadline;
        address recipient;
        address tokenOut;
        uint256 minAmountOut;
        /// @dev 65 bytes, 64 in the compact form, or anything that a contract accepts by ERC-1271.
        bytes signature;
    }

    /// @notice The members of an `Order` before its signature, as they lie in it.
    struct OrderHead {
        address owner;
        address tokenIn;
        uint256 maxAmountIn;
        uint256 nonce;
        uint256 deadline;
        address recipient;
        address tokenOut;
        uint256 minAmountOut;
    }

    /// @notice What the entrypoint asks for.
    struct Delivery {
        /// @dev Of the sell token.
        uint256 amount;
        OrderHead order;
    }

    /// @notice A call of an allow-listed contract, which may take up to `amountIn` of `token` from this contract meanwhile, and of nothing else;
    /// or of the entrypoint, `swap` or `swapExactOutput`, for a step over our own curve that is not the whole of a route's own part.
    struct Call {
        address target;
        address token;
        /// @dev The maximum of the type for all of the token that is here by then: what the steps before have brought.
        uint256 amountIn;
        /// @dev Where in `data` the amount is written in that case, behind the selector; not looked at otherwise.
        uint256 amountAt;
        bytes data;
    }

    /// @notice How to fill an order other than by the curve alone.
    struct Route {
        /// @dev Taken from the owner, fee included.
        uint256 amountIn;
        uint256 feeAmount;
        /// @dev Traded against the curve, before the calls; zero for nothing. Sold, or bought if `ownExactOut`.
        uint256 ownAmount;
        bool ownExactOut;
        /// @dev One after the other. Each must leave what it buys in this contract: the order's `tokenOut`, or the `token` of a later one.
        Call[] calls;
    }

    /// @notice Fills an order by the curve alone: sells `maxAmountIn` less the fee. Executors only. Permit2 pays the vault directly.
    /// Reverts as the entrypoint does (`InsufficientOutput`, the curve's errors), as Permit2 does (`InvalidNonce`, `SignatureExpired`,
    /// `InvalidSigner`, …), and `FeeTooHigh` when the fee is above `maxAmountIn`.
    /// @return amountIn What the owner gave, fee included.
    /// @return amountOut What the recipient received.
    function fillOnCurve(
        uint256 feeAmount,
        Order calldata order
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice As `fillOnCurve`, but buys exactly `minAmountOut`, and takes only its price and the fee. Reverts `ExcessiveInput` when that is
    /// more than `maxAmountIn`.
    function fillOnCurveExactOut(
        uint256 feeAmount,
        Order calldata order
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice Fills an order by calls of external contracts, together with the curve or without it. Executors only. What remains of the
    /// sell token, and of the `token` of any call, goes back to the owner, all that was bought to the recipient. A call can take what it was
    /// allowed and no more; whatever it takes less or brings less, the recipient gets the minimum or nothing happens.
    /// Reverts `ForbiddenTarget`, `CallFailed` with the target's own reason, `InsufficientOutput` when the recipient would receive less than
    /// `minAmountOut`, `ForbiddenRecipient`, `SameToken`, `ExcessiveInput`, `FeeTooHigh` and `MisplacedAmount`.
    /// @return amountIn What the owner gave net of what was returned, fee included.
    /// @return amountOut What the recipient received, measured by its balance as far as this contract paid it.
    function fillRoute(
        Order calldata order,
        Route calldata route
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice Has `token` give Permit2 an allowance by its owner's signature, and then does what the call `fill` of this contract would.
    /// Executors only. `permit` is the call of the token: `permit` of EIP-2612, of DAI, or of EIP-2612 with a signature in bytes, for Permit2
    /// as spender; anything else reverts `ForbiddenPermit`. It gets 200,000 gas at most, so that a token, or an account that a token asks, burns
    /// no more. Whether it succeeds does not matter, since anybody may have submitted it before: whether the allowance suffices shows when
    /// Permit2 pulls. The token need not be that of the order, as such a call changes nothing but by a signature. Reverts as `fill` does.
    /// @return amountIn What the owner gave, fee included.
    /// @return amountOut What the recipient received.
    function fillWithPermit(
        address token,
        bytes calldata permit,
        bytes calldata fill
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice Brings sell token into the vault: from the order's owner, by the rest of the order, which follows, or, if nothing follows, from
    /// what was pulled already. Entrypoint only, and only within an order.
    function deliver(Delivery calldata delivery) external;

    /// @notice Owner only. See the trust note above for what an executor can do.
    function setExecutor(address executor, bool allowed) external;

    /// @notice Owner only. Routes may call a target with any data, and let it take what the order at hand sells or has bought on its way.
    /// Permit2, the platform's contracts, tokens of listed markets and accounts without code are refused; within an order, so are its two
    /// tokens, and calls of `approve` and `increaseAllowance`, which a venue has that is a token of its own shares.
    /// A market of a target can't be listed (`ICurveBook.ForbiddenToken`).
    /// See the trust note above: whoever may call this can do by a target what an executor can do by a route.
    function setTarget(address target, bool allowed) external;

    /// @notice Whether `account` may execute orders.
    function isExecutor(address account) external view returns (bool);

    /// @notice Whether routes may call `account`.
    function isTarget(address account) external view returns (bool);

    /// @notice Whether the vault may pay to this contract: while a step of a route swaps against our own curve, and never otherwise.
    function isReceiving() external view returns (bool);

    /// @notice Where owners approve the sell token.
    function permit2() external view returns (address);

    /// @notice The witness type string of every order, as Permit2 wants it.
    function witnessTypeString() external pure returns (string memory);

    /// @notice EIP-712 type hash of `OrderWitness`.
    function orderWitnessTypehash() external pure returns (bytes32);
}
