// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {Ownable2StepUpgradeable} from "@openzeppelin/contracts-upgradeable/access/Ownable2StepUpgradeable.sol";
import {ICurveBook} from "./interfaces/ICurveBook.sol";
import {ICustodian} from "./interfaces/ICustodian.sol";
import {IEntrypoint} from "./interfaces/IEntrypoint.sol";
import {IOrderPayer} from "./interfaces/IOrderPayer.sol";
import {CurveMath} from "./libraries/CurveMath.sol";
import {TakerFees} from "./libraries/TakerFees.sol";

/// @title Entrypoint
/// @notice The documentation is in {IEntrypoint}.
///
/// Order within a swap: the curve's counter is written first, then the input is received, then the output paid. So a token's hook that
/// looks at the market in between sees the depth already taken, and nothing is paid before the vault has what it sold it for.
contract Entrypoint is IEntrypoint, Ownable2StepUpgradeable, UUPSUpgradeable, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

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
    ICustodian private immutable CUSTODIAN;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable SETTLER;

    /* SETUP */

    /// @param settler The only caller of `swapOrder`; zero when there is none.
    /// @custom:oz-upgrades-unsafe-allow constructor
    constructor(address curveBook, address custodian, address settler) {
        CURVE_BOOK = ICurveBook(curveBook);
        CUSTODIAN = ICustodian(custodian);
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
    ) external before(deadline) nonReentrant returns (uint256 amountOut) {
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
    ) external before(deadline) nonReentrant returns (uint256 amountIn) {
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
    ) external before(deadline) nonReentrant returns (uint256 amountOut) {
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
    ) external before(deadline) nonReentrant returns (uint256 amountIn) {
        _tryPermit(tokenIn, permit);
        return _swapExactOutput(tokenIn, tokenOut, recipient, amountOut, maxAmountIn);
    }

    /// @inheritdoc IEntrypoint
    function swapOrder(
        OrderSwap calldata order,
        bytes calldata payment
    ) external nonReentrant returns (uint256 amountIn, uint256 amountOut) {
        if (msg.sender != SETTLER) revert NotSettler(msg.sender);
        ICurveBook.Fill memory fill = CURVE_BOOK.consume(order.tokenIn, order.tokenOut, order.amount, order.exactOut);
        (amountIn, amountOut) = _amounts(fill);
        if (order.exactOut) {
            if (amountIn > order.limit) revert ExcessiveInput(amountIn, order.limit);
        } else if (amountOut < order.limit) {
            revert InsufficientOutput(amountOut, order.limit);
        }

        uint256 total = amountIn + order.inputFee;
        uint256 held = _vaultBalance(order.tokenIn);
        IOrderPayer(msg.sender).pay(order.tokenIn, total, payment);
        _requireReceived(order.tokenIn, held, total);

        CUSTODIAN.payOut(order.tokenOut, order.recipient, amountOut);
        _emitSwap(fill, order.taker, order.recipient, 0, order.inputFee);
    }

    function _swap(
        address tokenIn,
        address tokenOut,
        address recipient,
        uint256 amountIn,
        uint256 minAmountOut
    ) private returns (uint256 amountOut) {
        ICurveBook.Fill memory fill = CURVE_BOOK.consume(tokenIn, tokenOut, amountIn, false);
        (, uint256 gross) = _amounts(fill);
        uint256 fee = TakerFees.feeOf(gross, _storage().ratePpm[msg.sender]);
        amountOut = gross - fee;
        if (amountOut < minAmountOut) revert InsufficientOutput(amountOut, minAmountOut);
        _exchange(tokenIn, tokenOut, recipient, fill, amountIn, gross, fee);
    }

    function _swapExactOutput(
        address tokenIn,
        address tokenOut,
        address recipient,
        uint256 amountOut,
        uint256 maxAmountIn
    ) private returns (uint256 amountIn) {
        uint256 gross = amountOut;
        uint256 ratePpm = _storage().ratePpm[msg.sender];
        // An amount beyond what the curve accepts is passed on as it is, to be refused by its own name.
        if (amountOut <= CurveMath.MAX_AMOUNT) gross = TakerFees.grossFor(amountOut, ratePpm);
        ICurveBook.Fill memory fill = CURVE_BOOK.consume(tokenIn, tokenOut, gross, true);
        (amountIn, ) = _amounts(fill);
        if (amountIn > maxAmountIn) revert ExcessiveInput(amountIn, maxAmountIn);
        _exchange(tokenIn, tokenOut, recipient, fill, amountIn, gross, gross - amountOut);
    }

    /// @dev The vault gets at least `amountIn`, measured by its balance, or nothing happens.
    function _exchange(
        address tokenIn,
        address tokenOut,
        address recipient,
        ICurveBook.Fill memory fill,
        uint256 amountIn,
        uint256 gross,
        uint256 fee
    ) private {
        uint256 held = _vaultBalance(tokenIn);
        IERC20(tokenIn).safeTransferFrom(msg.sender, address(CUSTODIAN), amountIn);
        _requireReceived(tokenIn, held, amountIn);

        // Without a fee, paying out checks the whole gross output by itself.
        if (fee != 0) _requireLiquidity(tokenOut, gross);
        CUSTODIAN.payOut(tokenOut, recipient, gross - fee);
        _emitSwap(fill, msg.sender, recipient, fee, 0);
    }

    /// @dev Whoever saw the approval on its way can submit it first, which must not stop the swap. It then reverts here, and whether the
    /// allowance suffices shows when the input is pulled. A token that has no such function makes no difference either.
    function _tryPermit(address token, Permit calldata permit) private {
        (bool done, ) = token.call(
            abi.encodeCall(
                IERC20Permit.permit,
                (msg.sender, address(this), permit.value, permit.deadline, permit.v, permit.r, permit.s)
            )
        );
        done;
    }

    function _amounts(ICurveBook.Fill memory fill) private pure returns (uint256 amountIn, uint256 amountOut) {
        return fill.isBuy ? (fill.quoteAmount, fill.baseAmount) : (fill.baseAmount, fill.quoteAmount);
    }

    function _vaultBalance(address token) private view returns (uint256) {
        return IERC20(token).balanceOf(address(CUSTODIAN));
    }

    function _requireReceived(address token, uint256 held, uint256 required) private view {
        uint256 holds = _vaultBalance(token);
        uint256 received = holds > held ? holds - held : 0;
        if (received < required) revert InsufficientReceived(token, received, required);
    }

    function _emitSwap(
        ICurveBook.Fill memory fill,
        address taker,
        address recipient,
        uint256 fee,
        uint256 inputFee
    ) private {
        emit Swap(
            fill.market,
            taker,
            recipient,
            fill.fillSeq,
            fill.curveSeq,
            fill.isBuy,
            fill.baseAmount,
            fill.quoteAmount,
            fee,
            inputFee,
            fill.consumedBefore
        );
    }

    /// @dev The fee stays in the vault but is sold by makers like the rest, so settled claims must not have to back it.
    function _requireLiquidity(address token, uint256 gross) private view {
        uint256 available = CUSTODIAN.availableLiquidity(token);
        if (gross > available) revert ICustodian.InsufficientLiquidity(token, gross, available);
    }

    /* VIEWS */

    /// @inheritdoc IEntrypoint
    function quote(address tokenIn, address tokenOut, uint256 amountIn) external view returns (uint256 amountOut) {
        (, amountOut) = _preview(tokenIn, tokenOut, amountIn, false);
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
        (, uint256 gross) = _preview(tokenIn, tokenOut, amountIn, false);
        return gross - TakerFees.feeOf(gross, _storage().ratePpm[taker]);
    }

    /// @inheritdoc IEntrypoint
    function takerFee(address taker) external view returns (uint256 ratePpm) {
        return _storage().ratePpm[taker];
    }

    /* INTERNAL */

    function _preview(
        address tokenIn,
        address tokenOut,
        uint256 amount,
        bool exactOut
    ) private view returns (uint256 amountIn, uint256 amountOut) {
        (amountIn, amountOut) = CURVE_BOOK.preview(tokenIn, tokenOut, amount, exactOut);
        if (amountOut != 0 && amountOut > CUSTODIAN.availableLiquidity(tokenOut)) return (0, 0);
    }

    function _storage() private pure returns (EntrypointStorage storage $) {
        assembly ("memory-safe") {
            $.slot := STORAGE_LOCATION
        }
    }
}
