// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {Platform} from "./Platform.sol";
import {IMintableToken} from "./Interfaces.sol";

/// @notice A vault in which one maker has 1000 of one token, and what one expects of claims on it.
abstract contract VaultClaims is Platform {
    IMintableToken internal _token;
    address internal _t;

    function setUp() public virtual override {
        super.setUp();
        _token = _newToken("Token", 18);
        _t = address(_token);
        _deposit(MAKER, _token, 1000);
    }

    function _settle(address maker, uint256 amount, uint256 basis) internal {
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(maker, _t, amount, basis);
    }

    function _execute(address maker) internal {
        vm.prank(maker);
        custodian.executeWithdraw(_t);
    }

    function _noDelay() internal {
        vm.prank(OWNER);
        custodian.setWithdrawDelay(0);
    }

    function _expectSettled(address maker, uint256 amount, uint256 basis, uint256 readyAt) internal {
        vm.expectEmit(address(custodian));
        emit ICustodian.WithdrawSettled(maker, _t, amount, basis, uint64(readyAt));
    }

    function _expectClaim(address maker, address token, uint256 amount, uint256 readyAt, uint256 basis) internal view {
        (uint256 a, uint64 r) = custodian.claim(maker, token);
        assertEq(a, amount, "claim");
        assertEq(r, readyAt, "readyAt");
        assertEq(custodian.claimBasis(maker, token), basis, "basis");
    }
}
