// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IEntrypoint} from "./interfaces/IEntrypoint.sol";
import {IOrderPayer} from "./interfaces/IOrderPayer.sol";
import {IOrderSettler} from "./interfaces/IOrderSettler.sol";
import {IPermit2} from "./interfaces/IPermit2.sol";

/// @title OrderSettler
/// @notice The documentation is in {IOrderSettler}.
///
/// Nothing here is worth stealing between transactions, which is why arbitrary calls may be made from here and from nowhere else: owners'
/// allowances are Permit2's, and Permit2 lets this contract spend only by a signature that fixes where the proceeds go.
contract OrderSettler is IOrderSettler, Ownable2Step, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    bytes32 private constant WITNESS_TYPEHASH = keccak256(
        "OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)"
    );
    /// @dev Continues Permit2's own stub; the types that it names follow in alphabetical order.
    string private constant WITNESS_TYPE_STRING =
        "OrderWitness witness)OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)"
        "TokenPermissions(address token,uint256 amount)";

    IPermit2 private immutable PERMIT2;
    IEntrypoint private immutable ENTRYPOINT;
    address private immutable CUSTODIAN;
    address private immutable CURVE_BOOK;

    mapping(address account => bool) private _executors;
    mapping(address account => bool) private _targets;

    constructor(
        address owner,
        address permit2_,
        address entrypoint,
        address custodian,
        address curveBook
    ) Ownable(owner) {
        PERMIT2 = IPermit2(permit2_);
        ENTRYPOINT = IEntrypoint(entrypoint);
        CUSTODIAN = custodian;
        CURVE_BOOK = curveBook;
    }

    /* ONLY OWNER FUNCTIONS */

    /// @inheritdoc IOrderSettler
    function setExecutor(address executor, bool allowed) external onlyOwner {
        _executors[executor] = allowed;
        emit ExecutorSet(executor, allowed);
    }

    /// @inheritdoc IOrderSettler
    function setTarget(address target, bool allowed) external onlyOwner {
        if (allowed && (target == address(PERMIT2) || _isOurs(target) || target.code.length == 0)) {
            revert ForbiddenTarget(target);
        }
        _targets[target] = allowed;
        emit TargetSet(target, allowed);
    }

    /* ORDERS */

    modifier onlyExecutor() {
        if (!_executors[msg.sender]) revert NotExecutor(msg.sender);
        _;
    }

    /// @inheritdoc IOrderSettler
    function fill(
        uint256 feeAmount,
        bool exactOut,
        Order calldata order
    ) external onlyExecutor nonReentrant returns (uint256 amountIn, uint256 amountOut) {
        if (feeAmount > order.maxAmountIn) revert FeeTooHigh(feeAmount, order.maxAmountIn);
        uint256 tradable = order.maxAmountIn - feeAmount;
        (uint256 amount, uint256 limit) = exactOut ? (order.minAmountOut, tradable) : (tradable, order.minAmountOut);
        // The order comes back to `pay` as it came in: its place is the third argument, as it is here.
        (amountIn, amountOut) = _swap(order, exactOut, amount, limit, feeAmount, msg.data[4:]);
        amountIn += feeAmount;
        _emitFilled(order, amountIn, amountOut, feeAmount, true);
    }

    /// @inheritdoc IOrderSettler
    function fillRoute(
        Order calldata order,
        Route calldata route
    ) external onlyExecutor nonReentrant returns (uint256 amountIn, uint256 amountOut) {
        if (order.recipient == address(0) || _isOurs(order.recipient)) revert ForbiddenRecipient(order.recipient);
        if (order.tokenIn == order.tokenOut) revert SameToken(order.tokenIn);
        if (route.amountIn > order.maxAmountIn) revert ExcessiveInput(route.amountIn, order.maxAmountIn);
        if (route.feeAmount > route.amountIn) revert FeeTooHigh(route.feeAmount, route.amountIn);

        _pull(order, address(this), route.amountIn);
        bool feeInSwap = route.ownAmount != 0;
        if (feeInSwap) amountOut = _swapOwnPart(order, route);
        else if (route.feeAmount != 0) ENTRYPOINT.collectFee(order.tokenIn, route.feeAmount);
        for (uint256 i = 0; i < route.calls.length; ++i) {
            _call(order, route.calls[i]);
        }

        amountOut += _deliver(order.tokenOut, order.recipient);
        if (amountOut < order.minAmountOut) revert InsufficientOutput(amountOut, order.minAmountOut);
        amountIn = _refund(order, route.amountIn);
        _emitFilled(order, amountIn, amountOut, route.feeAmount, feeInSwap);
    }

    /// @inheritdoc IOrderPayer
    /// @dev `payment` is what this contract gave to `swapOrder`: the arguments of `fill`, with the order that Permit2 shall pay by, or nothing
    /// if this contract has pulled the input already. Outside of an order nothing is paid.
    function pay(uint256 amount, bytes calldata payment, address token) external {
        if (msg.sender != address(ENTRYPOINT) || !_reentrancyGuardEntered()) revert NotEntrypoint(msg.sender);
        if (payment.length == 0) return IERC20(token).safeTransfer(CUSTODIAN, amount);
        Order calldata order;
        // Same as abi.decode(payment, (uint256, bool, Order)), of which the third, but left where it is.
        assembly ("memory-safe") {
            order := add(payment.offset, calldataload(add(payment.offset, 0x40)))
        }
        _pull(order, CUSTODIAN, amount);
    }

    /* INTERNAL */

    function _swap(
        Order calldata order,
        bool exactOut,
        uint256 amount,
        uint256 limit,
        uint256 inputFee,
        bytes calldata payment
    ) private returns (uint256 amountIn, uint256 amountOut) {
        IEntrypoint entrypoint = ENTRYPOINT;
        bytes4 selector = IEntrypoint.swapOrder.selector;
        // Same as entrypoint.swapOrder(OrderSwap(order.tokenIn, order.tokenOut, order.owner, order.recipient, exactOut, amount, limit,
        // inputFee), payment). The entrypoint checks the addresses as it decodes them.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            mstore(add(data, 0x04), calldataload(add(order, 0x20)))
            mstore(add(data, 0x24), calldataload(add(order, 0xc0)))
            mstore(add(data, 0x44), calldataload(order))
            mstore(add(data, 0x64), calldataload(add(order, 0xa0)))
            mstore(add(data, 0x84), exactOut)
            mstore(add(data, 0xa4), amount)
            mstore(add(data, 0xc4), limit)
            mstore(add(data, 0xe4), inputFee)
            mstore(add(data, 0x104), 0x120)
            mstore(add(data, 0x124), payment.length)
            calldatacopy(add(data, 0x144), payment.offset, payment.length)
            let done := call(gas(), entrypoint, 0, data, add(0x144, payment.length), 0x00, 0x40)
            if iszero(and(eq(returndatasize(), 0x40), done)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            amountIn := mload(0x00)
            amountOut := mload(0x20)
        }
    }

    /// @dev Only the whole output is bound to a limit, and the whole input to what was pulled.
    function _swapOwnPart(Order calldata order, Route calldata route) private returns (uint256 amountOut) {
        uint256 limit = route.ownExactOut ? route.amountIn - route.feeAmount : 0;
        (, amountOut) = _swap(order, route.ownExactOut, route.ownAmount, limit, route.feeAmount, msg.data[:0]);
    }

    /// @dev Permit2 checks the signature over everything in the order, marks the nonce as used, and transfers.
    function _pull(Order calldata order, address to, uint256 amount) private {
        address permit2_ = address(PERMIT2);
        bytes4 selector = IPermit2.permitWitnessTransferFrom.selector;
        bytes32 typehash = WITNESS_TYPEHASH;
        string memory typeString = WITNESS_TYPE_STRING;
        bool known;
        // Same as PERMIT2.permitWitnessTransferFrom(PermitTransferFrom(TokenPermissions(order.tokenIn, order.maxAmountIn), order.nonce,
        // order.deadline), SignatureTransferDetails(to, amount), order.owner, keccak256(abi.encode(WITNESS_TYPEHASH, order.recipient,
        // order.tokenOut, order.minAmountOut)), WITNESS_TYPE_STRING, order.signature), with what is side by side in the order copied at
        // once. Permit2 checks the addresses that it is given, and those of the witness are bound by the signature.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, typehash)
            calldatacopy(add(data, 0x20), add(order, 0xa0), 0x60)
            let witness := keccak256(data, 0x80)

            mstore(data, selector)
            let arguments := add(data, 0x04)
            calldatacopy(arguments, add(order, 0x20), 0x80)
            mstore(add(arguments, 0x80), to)
            mstore(add(arguments, 0xa0), amount)
            mstore(add(arguments, 0xc0), calldataload(order))
            mstore(add(arguments, 0xe0), witness)
            mstore(add(arguments, 0x100), 0x140)
            let typeLength := add(0x20, and(add(mload(typeString), 0x1f), not(0x1f)))
            mstore(add(arguments, 0x120), add(0x140, typeLength))
            mcopy(add(arguments, 0x140), typeString, typeLength)
            let signature := add(order, calldataload(add(order, 0x100)))
            let signatureLength := add(0x20, and(add(calldataload(signature), 0x1f), not(0x1f)))
            let end := add(add(arguments, 0x140), typeLength)
            calldatacopy(end, signature, signatureLength)
            end := add(end, signatureLength)

            known := extcodesize(permit2_)
            if iszero(call(gas(), permit2_, 0, data, sub(end, data), 0x00, 0x00)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
        }
        // Without code it would accept any call.
        assert(known);
    }

    /// @dev Whatever the target leaves of its allowance is taken back.
    function _call(Order calldata order, Call calldata step) private {
        address target = step.target;
        if (!_targets[target] || target == order.tokenIn || target == order.tokenOut) revert ForbiddenTarget(target);
        IERC20 token = IERC20(order.tokenIn);
        token.forceApprove(target, step.amountIn);
        (bool done, bytes memory reason) = target.call(step.data);
        if (!done) revert CallFailed(target, reason);
        if (token.allowance(address(this), target) != 0) token.forceApprove(target, 0);
    }

    /// @return received By the recipient's balance, which is less than what was sent if the token keeps a part.
    function _deliver(address token, address recipient) private returns (uint256 received) {
        uint256 amount = IERC20(token).balanceOf(address(this));
        if (amount == 0) return 0;
        uint256 held = IERC20(token).balanceOf(recipient);
        IERC20(token).safeTransfer(recipient, amount);
        uint256 holds = IERC20(token).balanceOf(recipient);
        return holds > held ? holds - held : 0;
    }

    /// @return spent Of the amount pulled; zero if more came back, as when somebody had sent tokens here.
    function _refund(Order calldata order, uint256 pulled) private returns (uint256 spent) {
        uint256 left = IERC20(order.tokenIn).balanceOf(address(this));
        if (left != 0) IERC20(order.tokenIn).safeTransfer(order.owner, left);
        return pulled > left ? pulled - left : 0;
    }

    function _emitFilled(
        Order calldata order,
        uint256 amountIn,
        uint256 amountOut,
        uint256 feeAmount,
        bool feeInSwap
    ) private {
        bytes32 topic = OrderFilled.selector;
        // Same as emit OrderFilled(order.owner, order.nonce, order.recipient, order.tokenIn, order.tokenOut, amountIn, amountOut, feeAmount,
        // feeInSwap). Whatever calls were made before have checked the addresses.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, calldataload(add(order, 0x20)))
            mstore(add(data, 0x20), calldataload(add(order, 0xc0)))
            mstore(add(data, 0x40), amountIn)
            mstore(add(data, 0x60), amountOut)
            mstore(add(data, 0x80), feeAmount)
            mstore(add(data, 0xa0), feeInSwap)
            log4(data, 0xc0, topic, calldataload(order), calldataload(add(order, 0x60)), calldataload(add(order, 0xa0)))
        }
    }

    function _isOurs(address account) private view returns (bool) {
        return
            account == address(this) || account == address(ENTRYPOINT) || account == CUSTODIAN || account == CURVE_BOOK;
    }

    /* VIEWS */

    /// @inheritdoc IOrderSettler
    function isExecutor(address account) external view returns (bool) {
        return _executors[account];
    }

    /// @inheritdoc IOrderSettler
    function isTarget(address account) external view returns (bool) {
        return _targets[account];
    }

    /// @inheritdoc IOrderSettler
    function permit2() external view returns (address) {
        return address(PERMIT2);
    }

    /// @inheritdoc IOrderSettler
    function witnessTypeString() external pure returns (string memory) {
        return WITNESS_TYPE_STRING;
    }

    /// @inheritdoc IOrderSettler
    function orderWitnessTypehash() external pure returns (bytes32) {
        return WITNESS_TYPEHASH;
    }
}
