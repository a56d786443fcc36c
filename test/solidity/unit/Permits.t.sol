// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {Platform} from "../support/Platform.sol";

/// @notice Swaps that bring their approval along.
contract PermitsTest is Platform {
    bytes32 private constant PERMIT_TYPEHASH = keccak256(
        "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
    );
    uint256 private constant KEY = 0x7A4E7;
    address private _account;

    function setUp() public override {
        super.setUp();
        _postDefault();
        _account = vm.addr(KEY);
        base.mint(_account, 10e18);
    }

    function test_SwapByAPermit() external {
        uint256 quoted = _quote(false, 1e18);
        assertEq(_sell(1e18, quoted, _permit(1e18)), quoted, "as quoted");
        assertEq(quote.balanceOf(_account), quoted, "received");
        assertEq(base.allowance(_account, address(entrypoint)), 0, "allowance used");
    }

    function test_ExactOutputByAPermit() external {
        uint256 price = _quoteExactOutput(false, 3000e6);
        IEntrypoint.Permit memory permit = _permit(price);
        vm.prank(_account);
        uint256 paid = entrypoint.swapExactOutputWithPermit(
            address(base),
            address(quote),
            3000e6,
            price,
            STRANGER,
            START,
            permit
        );
        assertEq(paid, price, "as quoted");
        assertEq(quote.balanceOf(STRANGER), 3000e6, "received");
        assertEq(base.balanceOf(_account), 10e18 - price, "paid");
    }

    /// @dev Whoever submits the approval first does not stop the swap.
    function test_AFrontRunPermitDoesNoHarm() external {
        IEntrypoint.Permit memory p = _permit(1e18);
        vm.prank(STRANGER);
        IERC20Permit(address(base)).permit(_account, address(entrypoint), p.value, p.deadline, p.v, p.r, p.s);
        assertEq(_sell(1e18, 0, p), quote.balanceOf(_account), "sold");
        IEntrypoint.Permit memory second = _permit(1e18);
        vm.prank(STRANGER);
        IERC20Permit(address(base)).permit(
            _account,
            address(entrypoint),
            second.value,
            second.deadline,
            second.v,
            second.r,
            second.s
        );
        vm.prank(_account);
        entrypoint.swapExactOutputWithPermit(address(base), address(quote), 1e6, 1e18, _account, START, second);
    }

    function test_RevertWhen_NeitherPermitNorAllowanceSuffices() external {
        IEntrypoint.Permit memory permit = _permit(1e18);
        permit.value += 1;
        bytes memory refusal = abi.encodeWithSelector(
            IERC20Errors.ERC20InsufficientAllowance.selector,
            address(entrypoint),
            0,
            1e18
        );
        vm.prank(_account);
        vm.expectRevert(refusal);
        entrypoint.swapWithPermit(address(base), address(quote), 1e18, 0, _account, START, permit);
    }

    function test_RevertWhen_DeadlineHasPassed() external {
        IEntrypoint.Permit memory permit = _permit(1e18);
        bytes memory passed = abi.encodeWithSelector(IEntrypoint.DeadlinePassed.selector, START - 1);
        vm.startPrank(_account);
        vm.expectRevert(passed);
        entrypoint.swapWithPermit(address(base), address(quote), 1e18, 0, _account, START - 1, permit);
        vm.expectRevert(passed);
        entrypoint.swapExactOutputWithPermit(address(base), address(quote), 1e6, 1e18, _account, START - 1, permit);
    }

    function test_LimitsBindWithAPermitToo() external {
        IEntrypoint.Permit memory permit = _permit(1e18);
        uint256 quoted = _quote(false, 1e18);
        uint256 price = _quoteExactOutput(false, 1e6);
        vm.startPrank(_account);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.InsufficientOutput.selector, quoted, quoted + 1));
        entrypoint.swapWithPermit(address(base), address(quote), 1e18, quoted + 1, _account, START, permit);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.ExcessiveInput.selector, price, price - 1));
        entrypoint.swapExactOutputWithPermit(address(base), address(quote), 1e6, price - 1, _account, START, permit);
    }

    function _sell(uint256 amount, uint256 minimum, IEntrypoint.Permit memory permit) private returns (uint256) {
        vm.prank(_account);
        return entrypoint.swapWithPermit(address(base), address(quote), amount, minimum, _account, START, permit);
    }

    function _permit(uint256 value) private view returns (IEntrypoint.Permit memory) {
        IERC20Permit token = IERC20Permit(address(base));
        bytes32 structHash = keccak256(
            abi.encode(PERMIT_TYPEHASH, _account, address(entrypoint), value, token.nonces(_account), START)
        );
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), structHash));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(KEY, digest);
        return IEntrypoint.Permit(value, START, v, r, s);
    }
}
