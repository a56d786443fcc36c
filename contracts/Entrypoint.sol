// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {Panic} from "@openzeppelin/contracts/utils/Panic.sol";
import {Ownable2StepUpgradeable} from "@openzeppelin/contracts-upgradeable/access/Ownable2StepUpgradeable.sol";
import {ICurveBook} from "./interfaces/ICurveBook.sol";
import {ICustodian} from "./interfaces/ICustodian.sol";
import {IEntrypoint} from "./interfaces/IEntrypoint.sol";
import {IOrderSettler} from "./interfaces/IOrderSettler.sol";
import {CurveMath} from "./libraries/CurveMath.sol";
import {TakerFees} from "./libraries/TakerFees.sol";
import {Tokens} from "./libraries/Tokens.sol";
import {TransientLock} from "./libraries/TransientLock.sol";
import {FillRef} from "./types/FillRef.sol";

/// @title Entrypoint
/// @notice The documentation is in {IEntrypoint}.
///
/// Order within a swap: the curve's counter is written first, then the input is received, then the output is paid. So a token's hook that
/// reads the market in between sees the depth as taken already, and the vault pays nothing before it has the input.
contract Entrypoint is IEntrypoint, Ownable2StepUpgradeable, UUPSUpgradeable, TransientLock {
    /* STORAGE */

    /// @custom:storage-location erc7201:curvebook.storage.Entrypoint
    struct EntrypointStorage {
        mapping(address taker => uint256) ratePpm;
    }

    // keccak256(abi.encode(uint256(keccak256("curvebook.storage.Entrypoint")) - 1)) & ~bytes32(uint256(0xff))
    bytes32 private constant STORAGE_LOCATION = 0x3d109e3f307c2d96a64ade1560fe3ad2e3553f2ee0068c22e5d51184cab76100;

    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    ICurveBook private immutable CURVE_BOOK;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable CUSTODIAN;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable SETTLER;

    /* SETUP */

    /// @param settler The only caller of `swapWithCallback`; zero when there is none.
    /// @custom:oz-upgrades-unsafe-allow constructor
    constructor(address curveBook, address custodian, address settler) {
        CURVE_BOOK = ICurveBook(curveBook);
        CUSTODIAN = custodian;
        SETTLER = settler;
        _disableInitializers();
    }

    function initialize(address owner) external initializer {
        __Ownable_init(owner);
    }

    function _authorizeUpgrade(address) internal override onlyOwner {}

    /* ONLY OWNER FUNCTIONS */

    /// @inheritdoc IEntrypoint
    function setTakerFee(address taker, uint256 ratePpm) external onlyOwner {
        if (ratePpm > TakerFees.MAX_RATE_PPM) revert FeeTooHigh(ratePpm, TakerFees.MAX_RATE_PPM);
        _storage().ratePpm[taker] = ratePpm;
        emit TakerFeeSet(taker, ratePpm);
    }

    /* SWAPS */

    modifier onlySettler() {
        address settler = SETTLER;
        bool allowed;
        // Same as allowed = msg.sender == SETTLER, without the compiler's masking of addresses that are 160 bits wide already.
        assembly ("memory-safe") {
            allowed := eq(caller(), settler)
        }
        if (!allowed) revert NotSettler(msg.sender);
        _;
    }

    modifier before(uint256 deadline) {
        if (block.timestamp > deadline) revert DeadlinePassed(deadline);
        _;
    }

    /// @inheritdoc IEntrypoint
    function swap(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut,
        address recipient,
        uint256 deadline
    ) external before(deadline) locked returns (uint256 amountOut) {
        return _swap(tokenIn, tokenOut, recipient, amountIn, minAmountOut);
    }

    /// @inheritdoc IEntrypoint
    function swapExactOutput(
        address tokenIn,
        address tokenOut,
        uint256 amountOut,
        uint256 maxAmountIn,
        address recipient,
        uint256 deadline
    ) external before(deadline) locked returns (uint256 amountIn) {
        return _swapExactOutput(tokenIn, tokenOut, recipient, amountOut, maxAmountIn);
    }

    /// @inheritdoc IEntrypoint
    function swapWithPermit(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut,
        address recipient,
        uint256 deadline,
        Permit calldata permit
    ) external before(deadline) locked returns (uint256 amountOut) {
        _tryPermit(tokenIn, permit);
        return _swap(tokenIn, tokenOut, recipient, amountIn, minAmountOut);
    }

    /// @inheritdoc IEntrypoint
    function swapExactOutputWithPermit(
        address tokenIn,
        address tokenOut,
        uint256 amountOut,
        uint256 maxAmountIn,
        address recipient,
        uint256 deadline,
        Permit calldata permit
    ) external before(deadline) locked returns (uint256 amountIn) {
        _tryPermit(tokenIn, permit);
        return _swapExactOutput(tokenIn, tokenOut, recipient, amountOut, maxAmountIn);
    }

    /// @inheritdoc IEntrypoint
    function swapWithCallback(
        OrderSwap calldata request
    ) external onlySettler locked returns (uint256 amountIn, uint256 amountOut) {
        IOrderSettler.OrderHead calldata order = request.order;
        address taker;
        address tokenIn;
        address tokenOut;
        address recipient;
        bool exactOut;
        // Same as (taker, tokenIn, recipient, tokenOut) = (order.owner, order.tokenIn, order.recipient, order.tokenOut) and exactOut =
        // request.exactOut, with one check that all five values fit their types.
        assembly ("memory-safe") {
            taker := calldataload(order)
            tokenIn := calldataload(add(order, 0x20))
            recipient := calldataload(add(order, 0xa0))
            tokenOut := calldataload(add(order, 0xc0))
            exactOut := calldataload(add(request, 0x60))
            if or(shr(160, or(or(taker, tokenIn), or(recipient, tokenOut))), shr(1, exactOut)) {
                revert(0x00, 0x00)
            }
        }
        FillRef fill = _consume(request.amount, tokenIn, tokenOut, exactOut);
        (amountIn, amountOut) = fill.amounts();
        uint256 limit = request.limit;
        bool missed;
        // Same as missed = exactOut ? amountIn > limit : amountOut < limit, without a jump.
        assembly ("memory-safe") {
            missed := or(and(exactOut, gt(amountIn, limit)), gt(lt(amountOut, limit), exactOut))
        }
        if (missed) {
            if (exactOut) revert ExcessiveInput(amountIn, limit);
            revert InsufficientOutput(amountOut, limit);
        }

        uint256 inputFee = request.inputFee;
        fill.setInputFee(inputFee);
        uint256 required;
        unchecked {
            required = amountIn + inputFee;
        }
        if (required < inputFee) Panic.panic(Panic.UNDER_OVERFLOW);
        _receive(tokenIn, required, order);
        _payOut(tokenOut, recipient, amountOut, 0);
        _emitSwap(fill, taker, recipient);
    }

    /// @inheritdoc IEntrypoint
    function collectInputFee(IOrderSettler.Delivery calldata delivery) external onlySettler locked {
        if (ICustodian(CUSTODIAN).isLocked()) revert CustodianLocked();
        address token = delivery.order.tokenIn;
        uint256 held = Tokens.balanceOf(token, CUSTODIAN);
        IOrderSettler(msg.sender).deliver(delivery);
        uint256 holds = Tokens.balanceOf(token, CUSTODIAN);
        uint256 received = holds > held ? holds - held : 0;
        if (received < delivery.amount) revert InsufficientReceived(token, received, delivery.amount);
    }

    function _swap(
        address tokenIn,
        address tokenOut,
        address recipient,
        uint256 amountIn,
        uint256 minAmountOut
    ) private returns (uint256 amountOut) {
        FillRef fill = _consume(amountIn, tokenIn, tokenOut, false);
        amountOut = fill.amountOut();
        uint256 fee = 0;
        if (fill.chargesFees()) {
            fee = TakerFees.feeOf(amountOut, _storage().ratePpm[msg.sender]);
            amountOut -= fee;
        }
        if (amountOut < minAmountOut) revert InsufficientOutput(amountOut, minAmountOut);
        _exchange(tokenIn, tokenOut, recipient, fill, amountIn, amountOut, fee);
    }

    function _swapExactOutput(
        address tokenIn,
        address tokenOut,
        address recipient,
        uint256 amountOut,
        uint256 maxAmountIn
    ) private returns (uint256 amountIn) {
        uint256 gross = _grossFor(msg.sender, tokenIn, tokenOut, amountOut);
        FillRef fill = _consume(gross, tokenIn, tokenOut, true);
        amountIn = fill.amountIn();
        if (amountIn > maxAmountIn) revert ExcessiveInput(amountIn, maxAmountIn);
        _exchange(tokenIn, tokenOut, recipient, fill, amountIn, amountOut, gross - amountOut);
    }

    /// @dev Pulls the input, pays the output and emits `Swap`. Reverts unless the vault's balance of the input rises by at least `amountIn`.
    function _exchange(
        address tokenIn,
        address tokenOut,
        address recipient,
        FillRef fill,
        uint256 amountIn,
        uint256 amountOut,
        uint256 fee
    ) private {
        uint256 received = Tokens.pull(tokenIn, CUSTODIAN, amountIn);
        if (received < amountIn) revert InsufficientReceived(tokenIn, received, amountIn);
        fill.setFee(fee);
        _payOut(tokenOut, recipient, amountOut, fee);
        _emitSwap(fill, msg.sender, recipient);
    }

    /// @dev Has the settler bring the input, and measures it by the vault's balance as for any other swap. The settler gets back the order that
    /// it sent: the call data from `order` to the end, which has the order's signature behind its head.
    function _receive(address token, uint256 amount, IOrderSettler.OrderHead calldata order) private {
        bytes4 selector = IOrderSettler.deliver.selector;
        address custodian = CUSTODIAN;
        uint256 received;
        bool unknown;
        // Same as held = Tokens.balanceOf(token, custodian), IOrderSettler(msg.sender).deliver(Delivery(amount, <the order as it came>)),
        // holds = Tokens.balanceOf(token, custodian) and received = holds > held ? holds - held : 0, with the calls' data in memory that is
        // not reserved. The settler is the caller of this function, so it has code.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, 0x70a08231)
            mstore(add(data, 0x20), custodian)
            if iszero(staticcall(gas(), token, add(data, 0x1c), 0x24, 0x00, 0x20)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            unknown := lt(returndatasize(), 0x20)
            let held := mload(0x00)
            let size := sub(calldatasize(), order)
            mstore(add(data, 0x40), selector)
            mstore(add(data, 0x44), amount)
            calldatacopy(add(data, 0x64), order, size)
            if iszero(call(gas(), caller(), 0, add(data, 0x40), add(size, 0x24), 0x00, 0x00)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            if iszero(staticcall(gas(), token, add(data, 0x1c), 0x24, 0x00, 0x20)) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            unknown := or(unknown, lt(returndatasize(), 0x20))
            let holds := mload(0x00)
            received := mul(gt(holds, held), sub(holds, held))
        }
        if (unknown) revert Tokens.BalanceUnreadable(token);
        if (received < amount) revert InsufficientReceived(token, received, amount);
    }

    /// @dev Submits the caller's approval and ignores whether that worked. Anybody who saw the approval can submit it first; it then reverts
    /// here, which must not stop the swap. A token may also have no such function. If the allowance is too small, pulling the input reverts.
    function _tryPermit(address token, Permit calldata permit) private {
        (bool done, ) = token.call(
            abi.encodeCall(
                IERC20Permit.permit,
                (msg.sender, address(this), permit.value, permit.deadline, permit.v, permit.r, permit.s)
            )
        );
        done;
    }

    /// @dev Takes the amount from the market's live curve.
    function _consume(uint256 amount, address tokenIn, address tokenOut, bool exactOut) private returns (FillRef fill) {
        ICurveBook book = CURVE_BOOK;
        bytes4 selector = ICurveBook.consume.selector;
        // Same as book.consume(Request(amount, tokenIn, exactOut, tokenOut)), whose answer stays where it arrives: a struct of static members is
        // encoded as it lies in memory. An answer of another length comes from another version of the book, or from no code at all. The last
        // argument is computed first, so returndatasize() is that of this call, here as below.
        assembly ("memory-safe") {
            fill := mload(0x40)
            mstore(0x40, add(fill, 0x140))
            mstore(fill, selector)
            mstore(add(fill, 0x04), amount)
            mstore(add(fill, 0x24), tokenIn)
            mstore(add(fill, 0x44), exactOut)
            mstore(add(fill, 0x64), tokenOut)
            if iszero(and(eq(returndatasize(), 0x140), call(gas(), book, 0, fill, 0x84, fill, 0x140))) {
                returndatacopy(fill, 0x00, returndatasize())
                revert(fill, returndatasize())
            }
        }
    }

    function _payOut(address token, address to, uint256 amount, uint256 withheld) private {
        address custodian = CUSTODIAN;
        bytes4 selector = ICustodian.payOutWithheld.selector;
        // Same as custodian.payOutWithheld(Payment(token, to, amount, withheld)). An answer of one word proves that the custodian has code.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            mstore(add(data, 0x04), token)
            mstore(add(data, 0x24), to)
            mstore(add(data, 0x44), amount)
            mstore(add(data, 0x64), withheld)
            if iszero(and(eq(returndatasize(), 0x20), call(gas(), custodian, 0, data, 0x84, 0x00, 0x00))) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
        }
    }

    function _emitSwap(FillRef fill, address taker, address recipient) private {
        bytes32 topic = Swap.selector;
        bytes32 market = fill.market();
        // Same as emit Swap(market, taker, recipient, fill.fillSeq, ..., fill.consumedBefore): a fill begins with the event's data.
        assembly ("memory-safe") {
            log4(fill, 0x100, topic, market, taker, recipient)
        }
    }

    /* VIEWS */

    /// @inheritdoc IEntrypoint
    function quote(address tokenIn, address tokenOut, uint256 amountIn) external view returns (uint256 amountOut) {
        (, amountOut) = _preview(tokenIn, tokenOut, amountIn, false);
        // Same as return amountOut.
        assembly ("memory-safe") {
            mstore(0x00, amountOut)
            return(0x00, 0x20)
        }
    }

    /// @inheritdoc IEntrypoint
    function quoteExactOutput(
        address tokenIn,
        address tokenOut,
        uint256 amountOut
    ) external view returns (uint256 amountIn) {
        (amountIn, ) = _preview(tokenIn, tokenOut, amountOut, true);
    }

    /// @inheritdoc IEntrypoint
    function quoteFor(
        address taker,
        address tokenIn,
        address tokenOut,
        uint256 amountIn
    ) external view returns (uint256 amountOut) {
        (, amountOut) = _preview(tokenIn, tokenOut, amountIn, false);
        if (amountOut != 0 && CURVE_BOOK.chargesFees(tokenIn, tokenOut)) {
            amountOut -= TakerFees.feeOf(amountOut, _storage().ratePpm[taker]);
        }
    }

    /// @inheritdoc IEntrypoint
    function quoteForExactOutput(
        address taker,
        address tokenIn,
        address tokenOut,
        uint256 amountOut
    ) external view returns (uint256 amountIn) {
        uint256 gross = _grossFor(taker, tokenIn, tokenOut, amountOut);
        (amountIn, ) = _preview(tokenIn, tokenOut, gross, true);
    }

    /// @inheritdoc IEntrypoint
    function isLocked() external view returns (bool) {
        return _reentrancyGuardEntered();
    }

    /// @inheritdoc IEntrypoint
    function takerFee(address taker) external view returns (uint256 ratePpm) {
        return _storage().ratePpm[taker];
    }

    /* INTERNAL */

    /// @dev The output that leaves `taker` with `amountOut` after its fee. An amount beyond what the curve accepts is passed on as it is, so
    /// that the curve's error names the amount that the caller sent.
    function _grossFor(
        address taker,
        address tokenIn,
        address tokenOut,
        uint256 amountOut
    ) private view returns (uint256 gross) {
        if (amountOut > CurveMath.MAX_AMOUNT || !CURVE_BOOK.chargesFees(tokenIn, tokenOut)) return amountOut;
        return TakerFees.grossFor(amountOut, _storage().ratePpm[taker]);
    }

    function _preview(
        address tokenIn,
        address tokenOut,
        uint256 amount,
        bool exactOut
    ) private view returns (uint256 amountIn, uint256 amountOut) {
        ICurveBook book = CURVE_BOOK;
        bytes4 selector = ICurveBook.previewSwap.selector;
        // Same as (amountIn, amountOut) = book.previewSwap(tokenIn, tokenOut, amount, exactOut).
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            mstore(add(data, 0x04), tokenIn)
            mstore(add(data, 0x24), tokenOut)
            mstore(add(data, 0x44), amount)
            mstore(add(data, 0x64), exactOut)
            if iszero(and(eq(returndatasize(), 0x40), staticcall(gas(), book, data, 0x84, 0x00, 0x40))) {
                returndatacopy(data, 0x00, returndatasize())
                revert(data, returndatasize())
            }
            amountIn := mload(0x00)
            amountOut := mload(0x20)
        }
    }

    function _storage() private pure returns (EntrypointStorage storage $) {
        assembly ("memory-safe") {
            $.slot := STORAGE_LOCATION
        }
    }
}
