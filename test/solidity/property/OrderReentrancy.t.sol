// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {HookToken} from "../support/HostileTokens.sol";
import {Orders} from "../support/Orders.sol";
import {Attacker} from "./Reentrancy.t.sol";

/// @notice An executor whose orders run from inside its own token's hook, while the vault is about to count what it receives.
contract OrderReentrancyTest is Orders {
    HookToken private _hook;
    Attacker private _attacker;

    function setUp() public override {
        super.setUp();
        _hook = new HookToken();
        vm.startPrank(OWNER);
        bytes32 id = book.listMarket(address(base), address(_hook), 14, 1, 0, MAX_TTL_SEC);
        custodian.setWithdrawDelay(0);
        vm.stopPrank();
        _post(_fullRecord(id, Curve(1, uint32(START + MAX_TTL_SEC), 0, 0, _ladder(600_002, 15), _ladder(599_998, 15))));

        address[] memory spenders = new address[](1);
        spenders[0] = address(custodian);
        address[] memory tokens = new address[](1);
        tokens[0] = address(_hook);
        _attacker = new Attacker(_hook, spenders, tokens);
        _hook.mint(address(_attacker), 10_000e6);
        _hook.mint(signer, 10_000e6);
        _approvePermit2(signer, address(_hook));
        vm.prank(OWNER);
        settler.setExecutor(address(_attacker), true);
    }

    /// @dev The deposit would be credited with the fee as well, which the ledger books to the operator by the order's own event.
    function test_FeeInsideADepositIsRefused() external {
        (IOrderSettler.Order memory order, IOrderSettler.Route memory route) = _sellingHook();
        _attacker.plan(address(settler), abi.encodeCall(IOrderSettler.fillRoute, (order, route)), false);
        vm.expectEmit(address(custodian));
        emit ICustodian.Deposited(address(_attacker), address(_hook), 1000e6);
        _attacker.run(address(custodian), abi.encodeCall(ICustodian.deposit, (address(_hook), 1000e6)));
        _expectFailureOf(IEntrypoint.CustodianLocked.selector);
        assertEq(_hook.balanceOf(address(custodian)), 1000e6, "the deposit alone");

        _fillRoute(order, route);
        assertEq(_hook.balanceOf(address(custodian)), 1003e6, "the order was left as it was");
    }

    function test_FeeInsideAWithdrawalIsRefused() external {
        _attacker.run(address(custodian), abi.encodeCall(ICustodian.deposit, (address(_hook), 1000e6)));
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(address(_attacker), address(_hook), 400e6, 0);
        (IOrderSettler.Order memory order, IOrderSettler.Route memory route) = _sellingHook();
        _attacker.plan(address(settler), abi.encodeCall(IOrderSettler.fillRoute, (order, route)), true);
        _attacker.run(address(custodian), abi.encodeCall(ICustodian.executeWithdraw, (address(_hook))));
        _expectFailureOf(IEntrypoint.CustodianLocked.selector);
        assertEq(_hook.balanceOf(address(custodian)), 600e6, "the claim alone left");
    }

    /// @dev An order by the curve pays out before it ends, which asks the vault's lock by itself.
    function test_OrderByTheCurveInsideADepositIsRefused() external {
        (IOrderSettler.Order memory order, ) = _sellingHook();
        _attacker.plan(address(settler), abi.encodeCall(IOrderSettler.fillOnCurve, (3e6, order)), false);
        _attacker.run(address(custodian), abi.encodeCall(ICustodian.deposit, (address(_hook), 1000e6)));
        _expectFailureOf(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
        assertEq(_hook.balanceOf(address(custodian)), 1000e6, "the deposit alone");
        _fill(order, false, 3e6);
        assertEq(_hook.balanceOf(address(custodian)), 1300e6, "the order was left as it was");
    }

    /// @dev An order that anybody would sign, and a route that takes nothing but the fee.
    function _sellingHook() private returns (IOrderSettler.Order memory order, IOrderSettler.Route memory route) {
        return (_sign(_order(address(_hook), address(base), 300e6, 0)), _route(300e6, 3e6));
    }

    function _expectFailureOf(bytes4 selector) private view {
        assertEq(_attacker.failures(), 1, "refused");
        assertEq(keccak256(_attacker.lastError()), keccak256(abi.encodeWithSelector(selector)), "by a lock");
    }
}
