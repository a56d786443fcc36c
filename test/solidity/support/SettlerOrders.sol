// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {IExchange, Orders} from "./Orders.sol";
import {IMintableToken} from "./Interfaces.sol";

/// @notice Signed orders, on a curve of 15 knots of 0.819 base per side at 3000.01 and up, 2999.99 and down, and what one expects of their fills.
abstract contract SettlerOrders is Orders {
    function setUp() public virtual override {
        super.setUp();
        _postDefault();
    }

    function _expectForbidden(address target) internal {
        IOrderSettler.Route memory route = _step(_route(1e18, 0), target, address(base), 0, "");
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenTarget.selector, target));
        settler.fillRoute(order, route);
    }

    function _expectInner(bytes memory data, bytes memory reason) internal {
        IOrderSettler.Route memory route = _step(
            _route(1e18, 0),
            address(exchange),
            address(base),
            0,
            abi.encodeCall(IExchange.callBack, (address(settler), data))
        );
        IOrderSettler.Order memory order = _signed(false, 1e18, 0);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.CallFailed.selector, address(exchange), reason));
        settler.fillRoute(order, route);
    }

    function _delivery(
        IOrderSettler.Order memory order,
        uint256 amount
    ) internal pure returns (IOrderSettler.Delivery memory) {
        return IOrderSettler.Delivery(amount, _headOf(order));
    }

    /// @dev Sells one base, as the settler asks for it.
    function _request() internal returns (IEntrypoint.OrderSwap memory) {
        return IEntrypoint.OrderSwap(1e18, 0, 0, false, _headOf(_signed(false, 1e18, 0)));
    }

    function _headOf(IOrderSettler.Order memory order) internal pure returns (IOrderSettler.OrderHead memory) {
        return
            IOrderSettler.OrderHead({
                owner: order.owner,
                tokenIn: order.tokenIn,
                maxAmountIn: order.maxAmountIn,
                nonce: order.nonce,
                deadline: order.deadline,
                recipient: order.recipient,
                tokenOut: order.tokenOut,
                minAmountOut: order.minAmountOut
            });
    }

    function _expectFilled(
        IOrderSettler.Order memory order,
        uint256 amountIn,
        uint256 amountOut,
        uint256 fee,
        bool feeInSwap
    ) internal {
        vm.expectEmit(address(settler));
        emit IOrderSettler.OrderFilled(
            order.owner,
            order.nonce,
            order.recipient,
            order.tokenIn,
            order.tokenOut,
            amountIn,
            amountOut,
            fee,
            feeInSwap
        );
    }

    /// @dev What the signer gave and the recipient got since the start, and the vault's part of both.
    function _expectChanges(bool isBuy, uint256 paid, uint256 vaultGot, uint256 got, uint256 vaultPaid) internal view {
        (IMintableToken tokenIn, IMintableToken tokenOut) = isBuy ? (quote, base) : (base, quote);
        assertEq(tokenIn.balanceOf(signer), 10 ** 30 - paid, "signer paid");
        assertEq(tokenIn.balanceOf(address(custodian)), 10 ** 30 + vaultGot, "vault got");
        assertEq(tokenOut.balanceOf(RECIPIENT), got, "recipient got");
        assertEq(tokenOut.balanceOf(address(custodian)), 10 ** 30 - vaultPaid, "vault paid");
    }

    function _expectNothingLeft() internal view {
        assertEq(base.balanceOf(address(settler)) + quote.balanceOf(address(settler)), 0, "nothing left");
        assertEq(base.allowance(address(settler), address(exchange)), 0, "no allowance");
        assertEq(quote.allowance(address(settler), address(exchange)), 0, "no allowance");
    }
}
