// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ICustodian} from "./interfaces/ICustodian.sol";
import {ICurveBook} from "./interfaces/ICurveBook.sol";
import {IEntrypoint} from "./interfaces/IEntrypoint.sol";
import {IOrderSettler} from "./interfaces/IOrderSettler.sol";
import {IPermit2} from "./interfaces/IPermit2.sol";
import {TransientLock} from "./libraries/TransientLock.sol";

/// @title OrderSettler
/// @notice The documentation is in {IOrderSettler}.
///
/// Between transactions this contract has no tokens and no allowances. Therefore arbitrary calls may be made from here, and from no other
/// contract of the platform: owners give their allowances to Permit2, and Permit2 lets this contract spend only by a signature that fixes the
/// recipient.
contract OrderSettler is IOrderSettler, Ownable2Step, TransientLock {
    using SafeERC20 for IERC20;

    bytes32 private constant WITNESS_TYPEHASH = keccak256(
        "OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)"
    );
    /// @dev Permit2 puts the beginning of its own type string in front of this. The types that are named follow in alphabetical order.
    string private constant WITNESS_TYPE_STRING =
        "OrderWitness witness)OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)"
        "TokenPermissions(address token,uint256 amount)";
    /// @dev `WITNESS_TYPE_STRING` in pieces of 32 bytes, for assembly.
    bytes32 private constant WITNESS_TYPE_1 = "OrderWitness witness)OrderWitnes";
    bytes32 private constant WITNESS_TYPE_2 = "s(address recipient,address toke";
    bytes32 private constant WITNESS_TYPE_3 = "nOut,uint256 minAmountOut)TokenP";
    bytes32 private constant WITNESS_TYPE_4 = "ermissions(address token,uint256";
    bytes32 private constant WITNESS_TYPE_5 = " amount)";
    bytes32 private constant PARTNER_WITNESS_TYPEHASH = keccak256(
        "PartnerOrderWitness(address recipient,address tokenOut,uint256 minAmountOut,address partner,uint256 partnerBps,bytes32 appData)"
    );
    string private constant PARTNER_WITNESS_TYPE_STRING =
        "PartnerOrderWitness witness)PartnerOrderWitness(address recipient,address tokenOut,uint256 minAmountOut,"
        "address partner,uint256 partnerBps,bytes32 appData)TokenPermissions(address token,uint256 amount)";
    /// @dev The most that a partner gets of what an order buys, whatever its owner signs.
    uint256 private constant MAX_PARTNER_BPS = 1_000;
    uint256 private constant BPS = 10_000;
    /// @dev increaseAllowance(address,uint256), which older tokens have.
    bytes4 private constant INCREASE_ALLOWANCE_SELECTOR = 0x39509351;
    /// @dev permit(address,address,uint256,uint256,uint8,bytes32,bytes32), permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32) of
    /// DAI, and permit(address,address,uint256,uint256,bytes). The spender is the second argument of each.
    bytes4 private constant PERMIT_SELECTOR = 0xd505accf;
    bytes4 private constant DAI_PERMIT_SELECTOR = 0x8fcbaf0c;
    bytes4 private constant BYTES_PERMIT_SELECTOR = 0x9fd5a6cf;
    /// @dev Length of a permit's call data up to the end of its spender.
    uint256 private constant PERMIT_HEAD_BYTES = 0x44;
    /// @dev Most gas that a permit gets: more than twice what honest tokens take, also for owners whose signature a contract checks.
    uint256 private constant PERMIT_GAS = 200_000;
    /// @dev Most gas that a question of `fillChecked` gets: more than twice what the dearest preview of our own curve takes.
    uint256 private constant CHECK_GAS = 100_000;
    /// @dev Length of an encoded order up to the offset of its signature.
    uint256 private constant HEAD_BYTES = 0x100;
    /// @dev Length of a call of `deliver` that no signature follows: the input was pulled before.
    uint256 private constant PULLED_CALL_BYTES = 0x24 + HEAD_BYTES;

    address private immutable PERMIT2;
    address private immutable ENTRYPOINT;
    address private immutable CUSTODIAN;
    address private immutable CURVE_BOOK;

    /// @dev True while a step, or the own part of an order with a partner, swaps against our own curve, whose output the vault pays to this
    /// contract.
    bool private transient _receiving;

    mapping(address account => bool) private _executors;
    mapping(address account => bool) private _targets;

    constructor(
        address owner,
        address permit2_,
        address entrypoint,
        address custodian,
        address curveBook
    ) Ownable(owner) {
        PERMIT2 = permit2_;
        ENTRYPOINT = entrypoint;
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
        if (allowed && (target == PERMIT2 || _isOurs(target) || target.code.length == 0 || _isListed(target))) {
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

    modifier feeFits(uint256 feeAmount, uint256 maximum) {
        if (feeAmount > maximum) revert FeeTooHigh(feeAmount, maximum);
        _;
    }

    /// @inheritdoc IOrderSettler
    function fillOnCurve(
        uint256 feeAmount,
        Order calldata order
    ) external onlyExecutor locked feeFits(feeAmount, order.maxAmountIn) returns (uint256 amountIn, uint256 amountOut) {
        unchecked {
            uint256 tradable = order.maxAmountIn - feeAmount;
            (amountIn, amountOut) = _swapWhole(order, false, tradable, order.minAmountOut, feeAmount);
        }
        _emitFilled(order, amountIn, amountOut, feeAmount, true);
    }

    /// @inheritdoc IOrderSettler
    function fillOnCurveExactOut(
        uint256 feeAmount,
        Order calldata order
    ) external onlyExecutor locked feeFits(feeAmount, order.maxAmountIn) returns (uint256 amountIn, uint256 amountOut) {
        unchecked {
            uint256 tradable = order.maxAmountIn - feeAmount;
            (amountIn, amountOut) = _swapWhole(order, true, order.minAmountOut, tradable, feeAmount);
        }
        _emitFilled(order, amountIn, amountOut, feeAmount, true);
    }

    /// @inheritdoc IOrderSettler
    function fillRoute(
        Order calldata order,
        Route calldata route
    ) external onlyExecutor locked returns (uint256 amountIn, uint256 amountOut) {
        _checkRoute(order, route);
        uint256 stray = IERC20(order.tokenIn).balanceOf(address(this));
        bytes memory terms = abi.encode(WITNESS_TYPEHASH, order.recipient, order.tokenOut, order.minAmountOut);
        _pull(order, route.amountIn, keccak256(terms), WITNESS_TYPE_STRING);
        if (route.ownAmount != 0) amountOut = _swapOwnPart(order, route);
        _takeSteps(order, route);
        amountOut += _deliver(order.tokenOut, order.recipient);
        amountIn = _finish(order, route, stray, amountOut);
    }

    /// @inheritdoc IOrderSettler
    function fillPartnerRoute(
        Order calldata order,
        PartnerTerms calldata terms,
        Route calldata route
    ) external onlyExecutor locked returns (uint256 amountIn, uint256 amountOut) {
        _checkTerms(terms);
        _checkRoute(order, route);
        uint256 stray = IERC20(order.tokenIn).balanceOf(address(this));
        _pull(order, route.amountIn, _partnerWitness(order, terms), PARTNER_WITNESS_TYPE_STRING);
        if (route.ownAmount != 0) _swapOwnPartToHere(order, route);
        _takeSteps(order, route);
        uint256 partnerAmount = _payPartner(order.tokenOut, terms);
        amountOut = _deliver(order.tokenOut, order.recipient);
        amountIn = _finish(order, route, stray, amountOut);
        emit PartnerOrderFilled(order.owner, order.nonce, terms.partner, order.tokenOut, partnerAmount, terms.appData);
    }

    /// @inheritdoc IOrderSettler
    function fillWithPermit(
        address token,
        bytes calldata permit,
        bytes calldata fill
    ) external onlyExecutor returns (uint256, uint256) {
        _submit(token, permit);
        _forward(fill);
    }

    /// @inheritdoc IOrderSettler
    function fillChecked(
        Check[] calldata checks,
        uint256 amount,
        bytes calldata permit,
        bytes calldata fill
    ) external onlyExecutor returns (uint256, uint256) {
        OrderHead calldata order = _headIn(fill);
        (address owner, address token) = (order.owner, order.tokenIn);
        if (block.timestamp > order.deadline) revert SignatureExpired(order.deadline);
        if (owner.code.length != 0) revert OwnerHasCode(owner);
        // What others can change for nothing comes first, then what costs the owner least, before the other checks, which may be many.
        if (checks.length != 0) _expect(0, checks[0]);
        _expectUnused(owner, order.nonce);
        _expectFunds(token, abi.encodeCall(IERC20.balanceOf, (owner)), amount);
        for (uint256 i = 1; i < checks.length; ++i) {
            _expect(i, checks[i]);
        }
        if (permit.length != 0) _submit(token, permit);
        _expectFunds(token, abi.encodeCall(IERC20.allowance, (owner, PERMIT2)), amount);
        _forward(fill);
    }

    /// @inheritdoc IOrderSettler
    function deliver(Delivery calldata delivery) external {
        (address entrypoint, bool entered) = (ENTRYPOINT, _reentrancyGuardEntered());
        bool allowed;
        // Same as allowed = msg.sender == ENTRYPOINT && entered, without a jump.
        assembly ("memory-safe") {
            allowed := and(eq(caller(), entrypoint), entered)
        }
        if (!allowed) revert NotEntrypoint(msg.sender);
        (uint256 amount, OrderHead calldata order) = (delivery.amount, delivery.order);
        if (msg.data.length == PULLED_CALL_BYTES) IERC20(order.tokenIn).safeTransfer(CUSTODIAN, amount);
        else _pullIntoVault(order, amount);
    }

    /* INTERNAL */

    function _checkTerms(PartnerTerms calldata terms) private view {
        (address partner, uint256 bps) = (terms.partner, terms.partnerBps);
        if (bps > MAX_PARTNER_BPS) revert PartnerFeeTooHigh(bps, MAX_PARTNER_BPS);
        if ((partner != address(0) || bps != 0) && _isOurs(partner)) revert ForbiddenPartner(partner);
    }

    function _checkRoute(Order calldata order, Route calldata route) private view {
        if (_isOurs(order.recipient)) revert ForbiddenRecipient(order.recipient);
        if (order.tokenIn == order.tokenOut) revert SameToken(order.tokenIn);
        if (route.amountIn > order.maxAmountIn) revert ExcessiveInput(route.amountIn, order.maxAmountIn);
        if (route.feeAmount > route.amountIn) revert FeeTooHigh(route.feeAmount, route.amountIn);
    }

    function _partnerWitness(Order calldata order, PartnerTerms calldata terms) private pure returns (bytes32) {
        return
            keccak256(
                abi.encode(
                    PARTNER_WITNESS_TYPEHASH,
                    order.recipient,
                    order.tokenOut,
                    order.minAmountOut,
                    terms.partner,
                    terms.partnerBps,
                    terms.appData
                )
            );
    }

    /// @dev Sends the partner its part of all of the buy token that is here, rounded down in the recipient's favour.
    function _payPartner(address token, PartnerTerms calldata terms) private returns (uint256 amount) {
        if (terms.partnerBps == 0) return 0;
        amount = (IERC20(token).balanceOf(address(this)) * terms.partnerBps) / BPS;
        if (amount != 0) IERC20(token).safeTransfer(terms.partner, amount);
    }

    /// @dev Brings the fee into the vault unless the own part did, makes the calls, and gives back what they left.
    function _takeSteps(Order calldata order, Route calldata route) private {
        if (route.ownAmount == 0 && route.feeAmount != 0) _payFee(order, route.feeAmount);
        for (uint256 i = 0; i < route.calls.length; ++i) {
            _call(order, route.calls[i]);
        }

        for (uint256 i = 0; i < route.calls.length; ++i) {
            _giveBack(order, route.calls[i].token);
        }
    }

    /// @dev Checks what the recipient got, returns the rest of the input, and logs the fill.
    function _finish(
        Order calldata order,
        Route calldata route,
        uint256 stray,
        uint256 amountOut
    ) private returns (uint256 amountIn) {
        if (amountOut < order.minAmountOut) revert InsufficientOutput(amountOut, order.minAmountOut);
        amountIn = _refund(order, route.amountIn, stray);
        _emitFilled(order, amountIn, amountOut, route.feeAmount, route.ownAmount != 0);
    }

    /// @dev Calls a token's `permit`, whatever comes of it.
    function _submit(address token, bytes calldata permit) private {
        if (!_isPermit(permit)) revert ForbiddenPermit(token);
        // Same as token.call{gas: PERMIT_GAS}(permit), with nothing of its answer copied. A transaction with too little gas starves no permit:
        // below 64/63 of PERMIT_GAS the call gets all but 1/64 of what is left, so that a permit that runs out of it leaves the fill some 3,000
        // gas, and the whole reverts. An order is filled with its permit done, or with one that fails by itself.
        assembly ("memory-safe") {
            let data := mload(0x40)
            calldatacopy(data, permit.offset, permit.length)
            pop(call(PERMIT_GAS, token, 0, data, permit.length, 0x00, 0x00))
        }
    }

    /// @dev Ends the whole external call with what this contract answers to `fill`. The caller stays who it is, so that it can do nothing by it
    /// that it can't do without.
    function _forward(bytes calldata fill) private {
        // Same as return address(this).delegatecall(fill).
        assembly ("memory-safe") {
            let data := mload(0x40)
            calldatacopy(data, fill.offset, fill.length)
            let done := delegatecall(gas(), address(), data, fill.length, 0x00, 0x00)
            returndatacopy(data, 0x00, returndatasize())
            if iszero(done) {
                revert(data, returndatasize())
            }
            return(data, returndatasize())
        }
    }

    /// @dev The order of a call that fills one. Another call has something else there, and then the checks of it mean nothing: they can only
    /// refuse.
    function _headIn(bytes calldata fill) private pure returns (OrderHead calldata order) {
        // A route comes behind its order, a fee before it.
        bytes4 selector = bytes4(fill);
        bool isRoute =
            selector == IOrderSettler.fillRoute.selector || selector == IOrderSettler.fillPartnerRoute.selector;
        uint256 place = isRoute ? 0x04 : 0x24;
        assembly ("memory-safe") {
            order := add(add(fill.offset, 0x04), calldataload(add(fill.offset, place)))
        }
    }

    /// @dev Reverts `CheckFailed` unless the check holds.
    function _expect(uint256 index, Check calldata check) private view {
        (bool done, uint256 word) = _ask(check.target, check.data, check.word);
        (uint256 minimum, uint256 maximum) = (check.minimum, check.maximum);
        bool isBounded = maximum >= minimum;
        if (!done || word < minimum || (isBounded && word > maximum)) revert CheckFailed(index, word);
    }

    /// @dev Reverts `NonceUsed` once Permit2 takes no order of this nonce any more.
    function _expectUnused(address owner, uint256 nonce) private view {
        uint256 used = IPermit2(PERMIT2).nonceBitmap(owner, nonce >> 8);
        if ((used >> (nonce & 0xff)) & 1 != 0) revert NonceUsed(owner, nonce);
    }

    /// @dev Reverts `InsufficientFunds` if what the token answers is less than `amount`, or nothing.
    function _expectFunds(address token, bytes memory question, uint256 amount) private view {
        (, uint256 available) = _ask(token, question, 0);
        if (available < amount) revert InsufficientFunds(token, available, amount);
    }

    /// @dev A word of what `target` answers, of which no more is copied.
    /// @return done False, with zero as the word, if the call fails, as it does when it takes more than `CHECK_GAS`, or answers with less.
    function _ask(address target, bytes memory question, uint256 index) private view returns (bool done, uint256 word) {
        assembly ("memory-safe") {
            done := staticcall(CHECK_GAS, target, add(question, 0x20), mload(question), 0x00, 0x00)
            // Copying what is not there would use up all gas.
            done := and(done, lt(index, shr(5, returndatasize())))
            if done {
                returndatacopy(0x00, shl(5, index), 0x20)
                word := mload(0x00)
            }
        }
    }

    /// @dev Fills an order by our own curve alone.
    /// @return amountIn The fee included.
    function _swapWhole(
        Order calldata order,
        bool exactOut,
        uint256 amount,
        uint256 limit,
        uint256 inputFee
    ) private returns (uint256 amountIn, uint256 amountOut) {
        uint256 size;
        // The order is the last argument, so all call data from there on belongs to it.
        assembly ("memory-safe") {
            size := sub(calldatasize(), order)
        }
        (amountIn, amountOut) = _swap(order, size, exactOut, amount, limit, inputFee);
        unchecked {
            // The entrypoint has received this sum.
            amountIn += inputFee;
        }
    }

    /// @dev Trades the route's own part. An exact input has no limit here, since `fillRoute` checks the sum of all outputs; an exact output may
    /// cost at most what was pulled, less the fee.
    function _swapOwnPart(Order calldata order, Route calldata route) private returns (uint256 amountOut) {
        (, amountOut) = _swap(order, HEAD_BYTES, route.ownExactOut, route.ownAmount, _ownLimit(route), route.feeAmount);
    }

    function _ownLimit(Route calldata route) private pure returns (uint256) {
        return route.ownExactOut ? route.amountIn - route.feeAmount : 0;
    }

    /// @dev As `_swapOwnPart`, but the vault pays to this contract, so that the partner's part can be taken off.
    function _swapOwnPartToHere(Order calldata order, Route calldata route) private {
        OrderHead memory head = OrderHead({
            owner: order.owner,
            tokenIn: order.tokenIn,
            maxAmountIn: order.maxAmountIn,
            nonce: order.nonce,
            deadline: order.deadline,
            recipient: address(this),
            tokenOut: order.tokenOut,
            minAmountOut: order.minAmountOut
        });
        _receiving = true;
        IEntrypoint(ENTRYPOINT).swapWithCallback(
            IEntrypoint.OrderSwap(route.ownAmount, _ownLimit(route), route.feeAmount, route.ownExactOut, head)
        );
        _receiving = false;
    }

    /// @dev Swaps against our own curve for the order's owner.
    /// @param size Bytes of the order to pass on: all of it, or `HEAD_BYTES` if the input was pulled already.
    function _swap(
        Order calldata order,
        uint256 size,
        bool exactOut,
        uint256 amount,
        uint256 limit,
        uint256 inputFee
    ) private returns (uint256 amountIn, uint256 amountOut) {
        address entrypoint = ENTRYPOINT;
        bytes4 selector = IEntrypoint.swapWithCallback.selector;
        // Same as entrypoint.swapWithCallback(OrderSwap(amount, limit, inputFee, exactOut, <the order as it came>)). The entrypoint checks the
        // addresses in it.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            mstore(add(data, 0x04), amount)
            mstore(add(data, 0x24), limit)
            mstore(add(data, 0x44), inputFee)
            mstore(add(data, 0x64), exactOut)
            calldatacopy(add(data, 0x84), order, size)
            let done := call(gas(), entrypoint, 0, data, add(0x84, size), 0x00, 0x40)
            if iszero(and(eq(returndatasize(), 0x40), done)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            amountIn := mload(0x00)
            amountOut := mload(0x20)
        }
    }

    /// @dev Brings the operator's fee into the vault when nothing trades as the route's own part.
    function _payFee(Order calldata order, uint256 amount) private {
        OrderHead calldata head;
        assembly ("memory-safe") {
            head := order
        }
        IEntrypoint(ENTRYPOINT).collectInputFee(Delivery(amount, head));
    }

    /// @dev As `_pull`, but to the vault, and for an order whose signature follows its head in the call data. Ends the whole external call. On a
    /// chain without Permit2 the call of it succeeds and moves nothing; the entrypoint then reverts, since it measures what the vault received.
    function _pullIntoVault(OrderHead calldata order, uint256 amount) private {
        (address permit2_, address custodian) = (PERMIT2, CUSTODIAN);
        bytes4 selector = IPermit2.permitWitnessTransferFrom.selector;
        bytes32 typehash = WITNESS_TYPEHASH;
        (bytes32 type1, bytes32 type2, bytes32 type3) = (WITNESS_TYPE_1, WITNESS_TYPE_2, WITNESS_TYPE_3);
        (bytes32 type4, bytes32 type5) = (WITNESS_TYPE_4, WITNESS_TYPE_5);
        // Same as the call in `_pull`, with the custodian as recipient; members that are side by side in the order are copied together. It then
        // stops. It overwrites memory from 0x00 on, since no code of the compiler runs afterwards. Permit2 checks the addresses that it gets,
        // and the signature binds those in the witness.
        assembly ("memory-safe") {
            mstore(0x00, typehash)
            calldatacopy(0x20, add(order, 0xa0), 0x60)
            let witness := keccak256(0x00, 0x80)

            mstore(0x00, selector)
            calldatacopy(0x04, add(order, 0x20), 0x80)
            mstore(0x84, custodian)
            mstore(0xa4, amount)
            mstore(0xc4, calldataload(order))
            mstore(0xe4, witness)
            mstore(0x104, 0x140)
            mstore(0x124, 0x200)
            mstore(0x144, 0x88)
            mstore(0x164, type1)
            mstore(0x184, type2)
            mstore(0x1a4, type3)
            mstore(0x1c4, type4)
            mstore(0x1e4, type5)
            let signature := add(order, calldataload(add(order, 0x100)))
            let size := add(calldataload(signature), 0x20)
            calldatacopy(0x204, signature, size)
            if iszero(call(gas(), permit2_, 0, 0x00, add(0x204, size), 0x00, 0x00)) {
                returndatacopy(0x00, 0x00, returndatasize())
                revert(0x00, returndatasize())
            }
            stop()
        }
    }

    /// @dev Has Permit2 transfer `amount` of the sell token to this contract. Permit2 checks the signature over everything in the order and the
    /// witness, and marks the nonce as used.
    function _pull(Order calldata order, uint256 amount, bytes32 witness, string memory witnessType) private {
        IPermit2(PERMIT2).permitWitnessTransferFrom(
            IPermit2.PermitTransferFrom(
                IPermit2.TokenPermissions(order.tokenIn, order.maxAmountIn),
                order.nonce,
                order.deadline
            ),
            IPermit2.SignatureTransferDetails(address(this), amount),
            order.owner,
            witness,
            witnessType,
            order.signature
        );
    }

    /// @dev Carries out one step. Reverts `ForbiddenTarget`, `MisplacedAmount`, and `CallFailed` when the target reverts. What the target did
    /// not use of its allowance is revoked.
    function _call(Order calldata order, Call calldata step) private {
        address target = step.target;
        IERC20 token = IERC20(step.token);
        bool own = target == ENTRYPOINT;
        if (own ? !_isSwap(step.data) : !_mayCall(order, step)) revert ForbiddenTarget(target);
        (uint256 amount, bytes memory data) = (step.amountIn, step.data);
        if (amount == type(uint256).max) {
            amount = token.balanceOf(address(this));
            _writeAmount(data, step.amountAt, amount);
        }
        token.forceApprove(target, amount);
        // The vault pays to this contract during such a step only.
        if (own) _receiving = true;
        (bool done, bytes memory reason) = target.call(data);
        if (!done) revert CallFailed(target, reason);
        if (own) _receiving = false;
        if (token.allowance(address(this), target) != 0) token.forceApprove(target, 0);
    }

    /// @dev Writes `amount` at `offset` of the call data. The offset must lie behind the selector, which was checked before, and within the
    /// data.
    function _writeAmount(bytes memory data, uint256 offset, uint256 amount) private pure {
        if (data.length < 0x24 || offset < 0x04 || offset > data.length - 0x20) revert MisplacedAmount(offset);
        // Same as data[offset : offset + 32] = bytes32(amount).
        assembly ("memory-safe") {
            mstore(add(add(data, 0x20), offset), amount)
        }
    }

    /// @dev Sends what steps left of `token` to the owner. The order's two tokens are left to `_deliver` and `_refund`.
    function _giveBack(Order calldata order, address token) private {
        if (token == order.tokenIn || token == order.tokenOut) return;
        uint256 left = IERC20(token).balanceOf(address(this));
        if (left != 0) IERC20(token).safeTransfer(order.owner, left);
    }

    /// @dev Sends all of the buy token that is here to the recipient.
    /// @return received By how much the recipient's balance rose: less than what was sent if the token keeps a part.
    function _deliver(address token, address recipient) private returns (uint256 received) {
        uint256 amount = IERC20(token).balanceOf(address(this));
        if (amount == 0) return 0;
        uint256 held = IERC20(token).balanceOf(recipient);
        IERC20(token).safeTransfer(recipient, amount);
        uint256 holds = IERC20(token).balanceOf(recipient);
        return holds > held ? holds - held : 0;
    }

    /// @dev Sends all of the sell token that is here to the owner.
    /// @param stray What was here before the order. It goes to the owner, too, but does not count as returned.
    /// @return spent How much of the pulled amount was not returned.
    function _refund(Order calldata order, uint256 pulled, uint256 stray) private returns (uint256 spent) {
        uint256 left = IERC20(order.tokenIn).balanceOf(address(this));
        if (left != 0) IERC20(order.tokenIn).safeTransfer(order.owner, left);
        // Only what is left beyond `stray` comes from the pulled amount.
        uint256 unspent = left > stray ? left - stray : 0;
        return pulled > unspent ? pulled - unspent : 0;
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
        // feeInSwap). Permit2 and the entrypoint have checked the addresses in earlier calls.
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

    /// @dev Whether a step may call its target, which is not the entrypoint.
    function _mayCall(Order calldata order, Call calldata step) private view returns (bool) {
        address target = step.target;
        bool isToken = target == step.token || target == order.tokenIn || target == order.tokenOut;
        return _targets[target] && !isToken && !_isApproval(step.data);
    }

    /// @dev Whether it is one of the two calls of the entrypoint that a step may make.
    function _isSwap(bytes calldata data) private pure returns (bool) {
        bytes4 selector = bytes4(data);
        return selector == IEntrypoint.swap.selector || selector == IEntrypoint.swapExactOutput.selector;
    }

    /// @dev Whether a market trades this token. Other tokens may be targets: a venue can be the token of its own shares.
    function _isListed(address account) private view returns (bool) {
        return ICurveBook(CURVE_BOOK).isListed(account);
    }

    /// @dev Whether it is a call that lets somebody take tokens of this contract later. A venue that is a token has such functions.
    function _isApproval(bytes calldata data) private pure returns (bool approval) {
        (bytes4 approve, bytes4 increase) = (IERC20.approve.selector, INCREASE_ALLOWANCE_SELECTOR);
        // Same as approval = bytes4(data) == approve || bytes4(data) == increase. If the data is shorter than a selector, the bytes behind it
        // in the call data count as part of it, so that more calls are refused, never fewer.
        assembly ("memory-safe") {
            let selector := shl(224, shr(224, calldataload(data.offset)))
            approval := or(eq(selector, approve), eq(selector, increase))
        }
    }

    /// @dev Whether it is a token's `permit` with Permit2 as the spender.
    function _isPermit(bytes calldata data) private view returns (bool) {
        if (data.length < PERMIT_HEAD_BYTES) return false;
        bytes4 selector = bytes4(data);
        bool isKnown =
            selector == PERMIT_SELECTOR || selector == DAI_PERMIT_SELECTOR || selector == BYTES_PERMIT_SELECTOR;
        return isKnown && bytes32(data[0x24:PERMIT_HEAD_BYTES]) == bytes32(uint256(uint160(PERMIT2)));
    }

    /// @dev Whether it is zero or one of the platform's contracts, as the custodian's present implementation knows them.
    function _isOurs(address account) private view returns (bool) {
        return ICustodian(CUSTODIAN).isForbiddenRecipient(account);
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
    function isReceiving() external view returns (bool) {
        return _receiving;
    }

    /// @inheritdoc IOrderSettler
    function permit2() external view returns (address) {
        return PERMIT2;
    }

    /// @inheritdoc IOrderSettler
    function witnessTypeString() external pure returns (string memory) {
        return WITNESS_TYPE_STRING;
    }

    /// @inheritdoc IOrderSettler
    function orderWitnessTypehash() external pure returns (bytes32) {
        return WITNESS_TYPEHASH;
    }

    /// @inheritdoc IOrderSettler
    function partnerWitnessTypeString() external pure returns (string memory) {
        return PARTNER_WITNESS_TYPE_STRING;
    }

    /// @inheritdoc IOrderSettler
    function partnerOrderWitnessTypehash() external pure returns (bytes32) {
        return PARTNER_WITNESS_TYPEHASH;
    }
}
