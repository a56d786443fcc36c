// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title Executes signed orders, so that their owners need no gas.
/// @notice An order is a Permit2 `PermitWitnessTransferFrom` signature over the sell token, the most that may be taken of it, a nonce and a
/// deadline, with this contract as spender and `OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)` as witness. Its key
/// is (owner, nonce), which Permit2 lets through once. Owners approve Permit2 and never this contract.
///
/// An order may name a partner, who gets a part of what it buys, and a hash that is logged with its fill. Its witness is then
/// `PartnerOrderWitness(address recipient,address tokenOut,uint256 minAmountOut,address partner,uint256 partnerBps,bytes32 appData)`, it is
/// filled by `fillPartnerRoute` and in no other way, and the partner gets its part to the unit, or the whole call reverts.
///
/// Whatever the route, at least `minAmountOut` of the buy token, and everything beyond it that the route brought and is not a signed
/// partner's, is sent to the recipient, or the whole call reverts. What our own curve pays to the recipient is not measured, so a token that
/// keeps a part of transfers could deliver less; such tokens must not be listed. Of the sell token, what the route does not need is not
/// taken, or goes back to the owner. Between transactions this contract holds no token and has granted no allowance; what somebody sends here
/// by mistake goes to the next routed order of that token.
///
/// Trust: whether an order is run as exact input or as exact output, by which route, and with which fee is not in the signature. So the
/// holder of an executor's key can, at worst, take from each signed, unexpired and unused order that it knows of whatever a fill
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
    /// @notice Follows `OrderFilled` of an order with a partner or a hash: `partner` was sent `amount` of `token`, which the order bought,
    /// beside what the recipient received. Without a partner it is the zero address, and the amount zero.
    event PartnerOrderFilled(
        address indexed owner,
        uint256 indexed nonce,
        address indexed partner,
        address token,
        uint256 amount,
        bytes32 appData
    );
    /// @notice Whether `executor` may execute orders from now on.
    event ExecutorSet(address indexed executor, bool allowed);
    /// @notice Whether routes may call `target` from now on.
    event TargetSet(address indexed target, bool allowed);

    /// @notice Only executors may fill orders.
    error NotExecutor(address caller);
    /// @notice Only the entrypoint may ask for payment, and only within an order.
    error NotEntrypoint(address caller);
    /// @notice A route may not make this call: the target is not allow-listed, is a token of the order or of the step, or would be called to
    /// approve somebody; or it is the entrypoint and the call is neither `swap` nor `swapExactOutput`. In `setTarget`: the target is Permit2, a
    /// contract of the platform, a token that is traded on the platform, or no contract at all.
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
    /// @notice `amountAt` of a step lies within its selector, or 32 bytes from it on are not within its data.
    error MisplacedAmount(uint256 offset);
    /// @notice The call data is not a token's `permit` with Permit2 as spender.
    error ForbiddenPermit(address token);

    /// @notice The platform's own contracts are no partners, nor is zero with a part of the order.
    error ForbiddenPartner(address partner);
    /// @notice A partner's part can be at most `maximumBps`, 1,000 ten-thousandths.
    error PartnerFeeTooHigh(uint256 partnerBps, uint256 maximumBps);
    /// @notice The order of a checked fill is past its last second, as Permit2 says it of a signature.
    error SignatureExpired(uint256 signatureDeadline);
    /// @notice What `target` answers does not hold to the check at `index`; `word` is what it said, zero for a call that failed.
    error CheckFailed(uint256 index, uint256 word);
    /// @notice The owner of a checked order has code, which could use up any gas when it is asked for its signature.
    error OwnerHasCode(address owner);
    /// @notice Permit2 takes no order of this nonce any more.
    error NonceUsed(address owner, uint256 nonce);
    /// @notice Of the sell token the owner has, or lets Permit2 take, only `available`.
    error InsufficientFunds(address token, uint256 available, uint256 required);

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

    /// @notice The members of an `Order` before its signature, in the same order.
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

    /// @notice What the owner of an order with a partner or a hash signed beside an `Order`.
    struct PartnerTerms {
        /// @dev Zero for none.
        address partner;
        /// @dev Ten-thousandths of the buy token that the order brings, before the recipient gets the rest. The amount is rounded down.
        uint256 partnerBps;
        /// @dev Any hash, zero for none. It has no meaning here.
        bytes32 appData;
    }

    /// @notice What the entrypoint asks the settler to bring into the vault.
    struct Delivery {
        /// @dev In units of the sell token.
        uint256 amount;
        OrderHead order;
    }

    /// @notice A step of a route: a call of an allow-listed contract, which may take up to `amountIn` of `token` from this contract meanwhile,
    /// and no other token; or a call of the entrypoint, `swap` or `swapExactOutput`, for a step over our own curve beside the route's own part.
    struct Call {
        address target;
        address token;
        /// @dev The maximum of the type stands for all of the token that is here when the step is called: what earlier steps brought.
        uint256 amountIn;
        /// @dev In that case, the offset in `data`, selector included, at which the amount is written; ignored otherwise.
        uint256 amountAt;
        bytes data;
    }

    /// @notice What must hold before an order is filled: a word of what a view answers is within bounds.
    struct Check {
        address target;
        /// @dev Which word of the answer counts, from 0.
        uint256 word;
        /// @dev Inclusive.
        uint256 minimum;
        /// @dev Inclusive; there is none if it is below the minimum.
        uint256 maximum;
        bytes data;
    }

    /// @notice How to fill an order otherwise than by the curve alone.
    struct Route {
        /// @dev Taken from the owner, fee included.
        uint256 amountIn;
        uint256 feeAmount;
        /// @dev The own part, traded against the curve before the calls; zero for none. Units to sell, or to buy if `ownExactOut`.
        uint256 ownAmount;
        bool ownExactOut;
        /// @dev One after the other. Each must leave what it buys in this contract: the order's `tokenOut`, or the `token` of a later one.
        Call[] calls;
    }

    /// @notice Fills an order by the curve alone: sells `maxAmountIn` less the fee. Executors only. Permit2 pays the vault directly.
    /// Reverts as `IEntrypoint.swapWithCallback` does (`InsufficientOutput`, the curve's errors), as Permit2 does (`InvalidNonce`,
    /// `SignatureExpired`, `InvalidSigner`, …), `FeeTooHigh` when the fee is above `maxAmountIn`, and `NotExecutor`.
    /// @param feeAmount What the operator keeps, in units of the sell token.
    /// @return amountIn What the owner gave, fee included.
    /// @return amountOut What was sent to the recipient.
    function fillOnCurve(
        uint256 feeAmount,
        Order calldata order
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice As `fillOnCurve`, but buys exactly `minAmountOut`, and takes only its price and the fee. Reverts `ExcessiveInput` instead of
    /// `InsufficientOutput`, when price and fee together are more than `maxAmountIn`.
    function fillOnCurveExactOut(
        uint256 feeAmount,
        Order calldata order
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice Fills an order by calls of external contracts, together with the curve or without it. Executors only. What remains of the
    /// sell token, and of the `token` of any call, goes to the owner, and all of the buy token to the recipient. A call can take what it was
    /// allowed and no more. If a call takes less or brings less than expected, the recipient still gets the minimum, or the whole call reverts.
    /// Reverts `ForbiddenTarget`, `CallFailed` with the target's own reason, `InsufficientOutput` when the recipient would receive less than
    /// `minAmountOut`, `ForbiddenRecipient`, `SameToken`, `ExcessiveInput`, `FeeTooHigh` and `MisplacedAmount`, and as Permit2 and the
    /// entrypoint do.
    /// @return amountIn What the owner gave net of what was returned, fee included.
    /// @return amountOut What the recipient received: what our own part sent to it, and by how much its balance rose by what this contract sent.
    function fillRoute(
        Order calldata order,
        Route calldata route
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice As `fillRoute`, for an order whose owner signed `terms`; also by the curve alone, as a route without calls. The partner gets its
    /// part of all that the order brings of the buy token, whether the order sells a given amount or buys one, and `minAmountOut` is what the
    /// recipient gets besides: who buys exactly that much for the recipient has the route buy the partner's part, too. What the vault pays
    /// passes through this contract. Reverts, too, when the token refuses the transfer to the partner, with `ForbiddenPartner`, and with
    /// `PartnerFeeTooHigh`.
    /// @return amountIn What the owner gave net of what was returned, fee included.
    /// @return amountOut By how much the recipient's balance rose, the partner's part not included.
    function fillPartnerRoute(
        Order calldata order,
        PartnerTerms calldata terms,
        Route calldata route
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice Calls `permit` on `token`, by which the order's owner gives Permit2 an allowance, and then makes the call `fill` of this
    /// contract. Executors only. `permit` is call data of the token: `permit` of EIP-2612, of DAI, or of EIP-2612 with a signature in bytes,
    /// with Permit2 as spender; anything else reverts `ForbiddenPermit`. The token's call gets at most 200,000 gas, so that a token, or a
    /// contract that it calls, can't use up more. Whether it succeeds does not matter, since anybody may have submitted it before: if the
    /// allowance is too small, Permit2 reverts. The token need not be that of the order: such a call changes nothing without its owner's
    /// signature. Reverts as `fill` does.
    /// @return amountIn What the owner gave, fee included.
    /// @return amountOut What the recipient received.
    function fillWithPermit(
        address token,
        bytes calldata permit,
        bytes calldata fill
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice Makes the call `fill` of this contract, one of the three that fill an order, if all that spoils it most cheaply is as it was: so
    /// that an order that can't be filled any more costs its executor little. Executors only. It reverts, in this order, with `SignatureExpired`
    /// past the deadline, `OwnerHasCode`, `CheckFailed` if the first of `checks` does not hold, `NonceUsed`, `InsufficientFunds` unless the
    /// owner has `amount` of the sell token, `CheckFailed` for the other checks, and `InsufficientFunds` unless the owner, after `permit`,
    /// lets Permit2 take the amount. A permit is called as `fillWithPermit` does, of the sell token; an empty one is none. Checks are
    /// static calls, with at most 100,000 gas each, as those of the token; of an answer one word is read. They can only refuse: with the same
    /// signatures the executor could make the call `fill` alone. Otherwise reverts as `fill` does.
    /// @param amount Units of the sell token that the fill takes.
    /// @return amountIn What the owner gave, fee included.
    /// @return amountOut What the recipient received.
    function fillChecked(
        Check[] calldata checks,
        uint256 amount,
        bytes calldata permit,
        bytes calldata fill
    ) external returns (uint256 amountIn, uint256 amountOut);

    /// @notice Brings sell token into the vault: if the rest of the order follows in the call data, from the order's owner by the signature in
    /// it; if nothing follows, from what was pulled to this contract already. Entrypoint only, and only while an order is filled, else
    /// `NotEntrypoint`.
    function deliver(Delivery calldata delivery) external;

    /// @notice Sets whether `executor` may fill orders. Owner only. See the trust note above for what an executor can do.
    function setExecutor(address executor, bool allowed) external;

    /// @notice Sets whether routes may call `target`. Owner only. Routes may call it with any data, and let it take what the order sells or what
    /// earlier steps bought. Reverts `ForbiddenTarget` for Permit2, the platform's contracts, tokens of listed markets and accounts without
    /// code. `fillRoute` refuses a target, too, that is a token of the order or of the step, and calls of `approve` and `increaseAllowance`,
    /// which a venue has that is also the token of its shares. A target can't be a token of a new market (`ICurveBook.ForbiddenToken`).
    /// See the trust note above: whoever may call this can do by a target what an executor can do by a route.
    function setTarget(address target, bool allowed) external;

    /// @notice Whether `account` may execute orders.
    function isExecutor(address account) external view returns (bool);

    /// @notice Whether routes may call `account`.
    function isTarget(address account) external view returns (bool);

    /// @notice Whether the vault may pay to this contract: while a step of a route, or the own part of an order with a partner, swaps against
    /// our own curve, and never otherwise.
    function isReceiving() external view returns (bool);

    /// @notice Where owners approve the sell token.
    function permit2() external view returns (address);

    /// @notice The witness type string of an order without a partner and a hash, as Permit2 wants it.
    function witnessTypeString() external pure returns (string memory);

    /// @notice EIP-712 type hash of `OrderWitness`.
    function orderWitnessTypehash() external pure returns (bytes32);

    /// @notice The witness type string of an order with a partner or a hash, as Permit2 wants it.
    function partnerWitnessTypeString() external pure returns (string memory);

    /// @notice EIP-712 type hash of `PartnerOrderWitness`.
    function partnerOrderWitnessTypehash() external pure returns (bytes32);
}
