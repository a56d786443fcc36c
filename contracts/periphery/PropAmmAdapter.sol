// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {ICustodian} from "../interfaces/ICustodian.sol";
import {ICurveLens} from "../interfaces/ICurveLens.sol";
import {IEntrypoint} from "../interfaces/IEntrypoint.sol";
import {IPropAMM} from "../interfaces/IPropAMM.sol";
import {IPropAmmAdapter} from "../interfaces/IPropAmmAdapter.sol";
import {IPropAMMExactOut} from "../interfaces/IPropAMMExactOut.sol";

/// @title PropAmmAdapter
/// @notice The documentation is in {IPropAmmAdapter}.
///
/// It may leave an allowance to the entrypoint, which takes tokens only from its own caller.
contract PropAmmAdapter is IPropAmmAdapter, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    IEntrypoint private immutable ENTRYPOINT;
    ICurveLens private immutable LENS;
    ICustodian private immutable CUSTODIAN;

    constructor(address entrypoint_, address lens_, address custodian) {
        ENTRYPOINT = IEntrypoint(entrypoint_);
        LENS = ICurveLens(lens_);
        CUSTODIAN = ICustodian(custodian);
    }

    /* SWAPS */

    /// @dev Reverts if the output would stay in this contract.
    modifier notHere(address recipient) {
        if (recipient == address(this)) revert ForbiddenRecipient(recipient);
        _;
    }

    /// @inheritdoc IPropAMM
    function swap(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut,
        address recipient,
        uint256 deadline
    ) external notHere(recipient) nonReentrant returns (uint256 amountOut) {
        _take(tokenIn, amountIn);
        uint256 held = _balanceOf(tokenOut, recipient);
        ENTRYPOINT.swap(tokenIn, tokenOut, amountIn, minAmountOut, recipient, deadline);
        amountOut = _received(tokenOut, recipient, held, minAmountOut);
        _giveBack(tokenIn, msg.sender);
        emit Swapped(msg.sender, tokenIn, tokenOut, amountIn, amountOut, recipient);
    }

    /// @inheritdoc IPropAMMExactOut
    function swapExactOut(
        address tokenIn,
        address tokenOut,
        uint256 amountOut,
        uint256 amountInMax,
        address recipient,
        address refundRecipient,
        uint256 deadline
    ) external notHere(recipient) nonReentrant returns (uint256 amountIn) {
        _take(tokenIn, amountInMax);
        uint256 held = _balanceOf(tokenOut, recipient);
        amountIn = ENTRYPOINT.swapExactOutput(tokenIn, tokenOut, amountOut, amountInMax, recipient, deadline);
        amountOut = _received(tokenOut, recipient, held, amountOut);
        _refund(tokenIn, refundRecipient);
        emit Swapped(msg.sender, tokenIn, tokenOut, amountIn, amountOut, recipient);
    }

    /* VIEWS */

    /// @inheritdoc IPropAMM
    function isActive(address tokenIn, address tokenOut) external view returns (bool active) {
        return LENS.isActive(tokenIn, tokenOut);
    }

    /// @inheritdoc IPropAMM
    function getPairs() external view returns (TokenPair[] memory pairs) {
        ICurveLens.Pair[] memory listed = LENS.getPairs();
        pairs = new TokenPair[](listed.length);
        for (uint256 i = 0; i < listed.length; ++i) {
            pairs[i] = TokenPair(listed[i].token0, listed[i].token1);
        }
    }

    /// @inheritdoc IPropAMM
    function quote(address tokenIn, address tokenOut, uint256 amountIn) external view returns (uint256 amountOut) {
        amountOut = ENTRYPOINT.quoteFor(address(this), tokenIn, tokenOut, amountIn);
        if (amountOut == 0) revert NotTradable(tokenIn, tokenOut, amountIn);
    }

    /// @inheritdoc IPropAMMExactOut
    function quoteExactOut(
        address tokenIn,
        address tokenOut,
        uint256 amountOut
    ) external view returns (uint256 amountIn) {
        amountIn = ENTRYPOINT.quoteForExactOutput(address(this), tokenIn, tokenOut, amountOut);
        if (amountIn == 0) revert NotTradable(tokenIn, tokenOut, amountOut);
    }

    /// @inheritdoc IERC165
    function supportsInterface(bytes4 id) external pure returns (bool) {
        return
            id == type(IERC165).interfaceId ||
            id == type(IPropAMM).interfaceId ||
            id == type(IPropAMMExactOut).interfaceId;
    }

    /// @inheritdoc IPropAmmAdapter
    function entrypoint() external view returns (address) {
        return address(ENTRYPOINT);
    }

    /// @inheritdoc IPropAmmAdapter
    function lens() external view returns (address) {
        return address(LENS);
    }

    /* INTERNAL */

    /// @dev Pulls what the caller has not transferred before. The entrypoint's allowance is set to the maximum, and set again when it no longer
    /// suffices: some tokens reduce even the maximum.
    function _take(address token, uint256 amount) private {
        uint256 held = _balanceOf(token, address(this));
        if (held < amount) IERC20(token).safeTransferFrom(msg.sender, address(this), amount - held);
        if (IERC20(token).allowance(address(this), address(ENTRYPOINT)) < amount) {
            IERC20(token).forceApprove(address(ENTRYPOINT), type(uint256).max);
        }
    }

    /// @dev Sends all of the token that is here.
    function _giveBack(address token, address to) private {
        uint256 rest = _balanceOf(token, address(this));
        if (rest != 0) IERC20(token).safeTransfer(to, rest);
    }

    /// @dev What is sent to one of the platform's contracts would be lost.
    function _refund(address token, address to) private {
        if (CUSTODIAN.isForbiddenRecipient(to)) revert ForbiddenRecipient(to);
        _giveBack(token, to);
    }

    /// @dev By how much the recipient's balance has risen above `held`. Reverts `InsufficientOutput` below the minimum.
    function _received(
        address token,
        address recipient,
        uint256 held,
        uint256 minimum
    ) private view returns (uint256 received) {
        uint256 holds = _balanceOf(token, recipient);
        received = holds > held ? holds - held : 0;
        if (received < minimum) revert InsufficientOutput(received, minimum);
    }

    function _balanceOf(address token, address account) private view returns (uint256) {
        return IERC20(token).balanceOf(account);
    }
}
